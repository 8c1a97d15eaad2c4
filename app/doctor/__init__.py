"""Looks at the machine and the installed stack: what is there, what is wrong, and how to mend it.

A probe a file: `probe` finds what there is, and the `check_*` functions judge what was found, so they can be tested
without MPI. Apart from one another, these files import only `glpilot.app.runtime.launcher` of ours, and nothing heavy
at their top: a package that is missing or broken is a finding, not a traceback. They never touch rows, graphs or
models.
"""
