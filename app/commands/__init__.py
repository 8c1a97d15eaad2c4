"""The subcommands of `glpilot`, a file each: SUMMARY, add_arguments(parser), run(arguments).

These files import nothing heavy at their top, so that `glpilot --help` answers at once and the commands
that need neither MPI nor torch never load them.
"""
