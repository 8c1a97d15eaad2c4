"""Looks at the machine and the installed stack: what is there, what is wrong, and how to mend it.

A probe a file: `probe` finds what there is, and the `check_*` functions judge what was found, so they can be tested
without MPI. It may import runtime/ only (what is known of launchers and variables), and nothing heavy at the top of a
file: a package that is missing or broken is a finding, not a traceback. It never touches rows, graphs or models.
"""
