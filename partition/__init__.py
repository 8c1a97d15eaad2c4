"""From a graph to parts: METIS and other assignments, renumbering, the partition book, and how good a partition is.

It may import data/ only, and runs in one process: no MPI, and DGL in a process of its own.
"""
