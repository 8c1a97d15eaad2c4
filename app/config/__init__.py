"""Every setting of a training run: its key, its default, its limits and its meaning; the presets; and the way from a
preset, a YAML file and flags to one validated, frozen Config.

It may import data/ only, for errors, so that `glpilot --help` answers at once; it never touches MPI, torch, or any file
but the YAML that it is given to read and the page whose tables docs.py writes.
"""
