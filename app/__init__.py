"""The program: commands at the door, training within, and below them the rooms that training puts together.

Each folder is a room whose docstring says what it is for, what it may import and what it never touches;
tests/test_rooms.py holds the code to it. Imports go down this list only: commands, doctor · training · results ·
dense, models · embedding (copies, gradients, rows) · graph · runtime, config, and from there to partition/ and data/.
"""
