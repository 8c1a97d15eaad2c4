"""Files and formats: the HDF5 schema, graphs, parts, splits, synthetic graphs, and in importers/ what users have.

It may import none of our rooms. It knows nothing of ranks, of training, or of who reads what it writes.
"""
