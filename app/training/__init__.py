"""Training and evaluation: the step, the loop over epochs, and the whole run, put together from the rooms below.

It may import results/, dense/, models/, embedding/ with its copies/, gradients/ and rows/, graph/, runtime/ and
config/. It reads the config and hands plain values down; it never touches MPI windows, Horovod, or the bytes of a file.
"""
