"""Runs that several of these tests look at, made once: starting ranks takes longer than what they compute."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from helpers.launch import LONGER_FLAGS, make_parts, run_ranks


@pytest.fixture(scope="session")
def parts(tmp_path_factory):
    return make_parts(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="session")
def run_on_one_host(parts):
    """From a number of ranks to the folder of a synchronous run of theirs on this machine."""

    @cache
    def run_folder(num_ranks: int) -> Path:
        folder = parts.parent / f"one-host-{num_ranks}"
        done = run_ranks(
            num_ranks, "glpilot", "train", parts, *LONGER_FLAGS, "--preset", "synchronous", "--run", folder
        )
        assert done.returncode == 0, done.stderr
        assert f"{num_ranks} on 1" in done.stdout
        return folder

    return run_folder
