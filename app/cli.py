"""The `glpilot` command: picks the subcommand, and turns a user's mistake into one line and exit code 2."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from importlib.metadata import version
from typing import NoReturn

from glpilot.app.runtime.launcher import is_first_rank
from glpilot.data.errors import UserError, describe

# Subcommand → its module in app/commands.
COMMANDS = {
    "import": "import_",
    "generate": "generate",
    "partition": "partition",
    "train": "train",
    "evaluate": "evaluate",
    "export": "export",
    "doctor": "doctor",
}


class Parser(argparse.ArgumentParser):
    """Reports a wrong command line as any other mistake."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} ({self.prog} --help shows what there is)")


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="glpilot", description="Distributed training of graph neural networks with learnable embeddings."
    )
    parser.add_argument("--version", action="version", version=f"glpilot {version('glpilot')}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module_name in COMMANDS.items():
        module = import_module(f"glpilot.app.commands.{module_name}")
        subparser = subparsers.add_parser(name, help=module.SUMMARY, description=module.SUMMARY, allow_abbrev=False)
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
    return parser


def main() -> int:
    program = "glpilot"
    try:
        arguments = build_parser().parse_args()
        program = f"glpilot {arguments.command}"
        return arguments.run(arguments) or 0
    except BrokenPipeError:  # the reader of our output, such as `head`, has gone
        sys.stderr.close()
        return 1
    except ImportError as error:
        if is_first_rank(os.environ):
            print(f"{program}: {error}; set the environment up with: bash jobs/setup.sh", file=sys.stderr)
        return 2
    except (UserError, OSError) as error:
        if is_first_rank(os.environ):  # the others met the same mistake
            print(f"{program}: {describe(error)}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"{program}: not enough memory ({error})", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130  # as shells count it


if __name__ == "__main__":
    sys.exit(main())
