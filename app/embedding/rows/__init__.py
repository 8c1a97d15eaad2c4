"""A row where it lives: records, the sharded store and its MPI windows, the plan of who owns what, the optimizers.

It may import runtime/ only. Nothing here is ever stale, and nothing here sends a gradient.
"""
