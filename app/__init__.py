"""The SPMD program: commands, training, evaluation, export. Imports glpilot.partition and glpilot.data."""
