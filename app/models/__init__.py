"""The graph neural networks, a file each, and what they share (gnn.py).

This room may import config/ only. Models know blocks and tensors, and nothing of ranks, of rows or of where their
inputs come from.
"""
