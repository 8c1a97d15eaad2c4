"""Ways to keep the model the same on all ranks, a file each.

It may import no other room, and knows no rows and no graph.
"""
