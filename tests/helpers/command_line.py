"""Run `glpilot` in this process, as from the shell."""

from __future__ import annotations

import contextlib
import io
import sys
from unittest import mock

from glpilot.app import cli


def run_command(*arguments) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of `glpilot ARGUMENTS`."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["glpilot", *(str(argument) for argument in arguments)]
    with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main()
    return code, out.getvalue(), err.getvalue()
