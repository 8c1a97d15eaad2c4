"""Keeps the wheels that the set-up builds, so that another checkout on the same machine need not build them again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Callable


class BuildError(RuntimeError):
    """The wheel cannot be built; the message is for the user."""


def find_wheel(folder: Path) -> Path | None:
    return next(iter(sorted(folder.glob("*.whl"))), None)


def run_logged(command: Sequence[str], log: Path, environ: Mapping[str, str]) -> None:
    with open(log, "a") as stream:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=dict(environ))
    if done.returncode:
        raise BuildError(f"the build failed; the last lines of {log} say why")


def find_or_build(cache: Path, key: str, build: Callable[[Path, Path], Path], details: str) -> Path:
    """The wheel named `key`, which tells apart all that the binary depends on.

    Args:
        build: (folder to work in, log file) → the folder that holds the wheel, inside the first.
        details: kept beside the wheel, for people.

    Raises:
        BuildError: `build` failed; its log remains.
    """
    final = cache / key
    wheel = find_wheel(final)
    if wheel is not None:
        print(f"using a wheel built before: {wheel}", file=sys.stderr)
        return wheel

    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".build.", dir=cache) as folder:
        log = cache / f"{key}{Path(folder).suffix}.log"  # outlives a build that fails
        print(f"building {key}, some minutes; log: {log}", file=sys.stderr)
        wheels = build(Path(folder), log)
        (wheels / "built-for.txt").write_text(details)
        try:
            os.rename(wheels, final)  # atomic: others see the whole folder or none of it
        except OSError:
            if find_wheel(final) is None:
                raise
            # another set-up has built the same wheel meanwhile: use that one
    shutil.move(log, final / "build.log")
    wheel = find_wheel(final)
    assert wheel is not None
    return wheel
