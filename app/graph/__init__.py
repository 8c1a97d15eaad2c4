"""The graph on the ranks: who owns which nodes, the topology in a host's shared memory, seeds, and sampling.

It may import runtime/, partition/ (the book) and data/ (the files). It never touches embedding rows, models or
gradients, and writes no file.
"""
