"""The ranks and the machine under them: launchers, start and end of MPI and Horovod, agreement on errors, host memory,
devices, clocks.

It may import data/ only, for errors. It knows nothing of graphs, rows, models or settings; any other room may use it.
"""
