"""Readers of what users have: edge lists, labels, arrays, SciPy, DGL and OGB files. Each gives numpy arrays."""
