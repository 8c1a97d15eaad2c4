"""Training and evaluation: the step, the loop over epochs, and the whole run, put together from the rooms below.

It may import every room but commands/ and doctor/. It reads the config and hands plain values down; it never touches MPI
windows, Horovod, or the bytes of a file.
"""
