"""Offline partitioning: assign nodes to parts, relabel, write one file a part. Imports only glpilot.data."""
