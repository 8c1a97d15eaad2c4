"""The way of a gradient from a batch to its row: summed, perhaps waiting in a window, and sent to owners or replicas.

It may import rows/ and runtime/. Gradients leave the rank in exchange.py (Horovod) and host_exchange.py (MPI within a
host), but for P3, which sends those of first-layer sums instead (app/training/p3/exchange.py). It never reads rows, and
never updates them.
"""
