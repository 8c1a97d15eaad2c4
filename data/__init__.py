"""Files and formats: HDF5 schema, graphs, parts, importers, synthetic graphs. Imports nothing of ours."""
