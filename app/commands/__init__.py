"""The door: the subcommands of `glpilot`, a file each, with SUMMARY, add_arguments(parser) and run(arguments).

A command reads the command line, starts the ranks if it needs them, and calls one thing within. It may import doctor/,
training/, results/, rows/ (of embedding/), runtime/, config/, partition/ and data/. These files import nothing heavy at
their top, so that `glpilot --help` answers at once and the commands that need neither MPI nor torch never load them.
They never touch windows, gradients or models themselves.
"""
