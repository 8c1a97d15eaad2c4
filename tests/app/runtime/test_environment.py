"""Variables that would end Horovod or MPI by a signal are named in one line, before anything starts."""

from __future__ import annotations

import pytest

from glpilot.app.runtime.environment import check_environment
from glpilot.data.errors import UserError
from helpers.launch import ENVIRONMENT, run, run_ranks


@pytest.mark.parametrize(
    "environment", [{}, {"HOROVOD_CONTROLLER": "mpi", "HOROVOD_CPU_OPERATIONS": "MPI"}, {"HOROVOD_CONTROLLER": ""}]
)
def test_what_ranks_can_start_with(environment):
    check_environment(environment)


@pytest.mark.parametrize("name", ["HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS"])
@pytest.mark.parametrize("value", ["gloo", "nonsense", "mpi "])
def test_another_choice_is_refused_by_name(name, value):
    with pytest.raises(UserError, match=f"{name}: expected mpi or nothing, got '{value}'.*unset {name}"):
        check_environment({name: value})


@pytest.mark.parametrize(
    "name, value",
    [("HOROVOD_CONTROLLER", "gloo"), ("HOROVOD_CPU_OPERATIONS", "nonsense"), ("MPI4PY_RC_INITIALIZE", "0")],
)
@pytest.mark.parametrize("num_ranks", [1, 2])
def test_the_program_ends_with_one_line(tmp_path, monkeypatch, name, value, num_ranks):
    monkeypatch.setitem(ENVIRONMENT, name, value)
    command = ("glpilot", "evaluate", tmp_path / "run")
    done = run(*command) if num_ranks == 1 else run_ranks(num_ranks, *command)
    lines = [line for line in done.stderr.splitlines() if line.startswith("glpilot")]
    assert done.returncode == 2 and len(lines) == 1, done.stderr
    assert name in lines[0] and "unset" in lines[0] and "Traceback" not in done.stderr


def test_doctor_names_it_and_ends_in_order(monkeypatch):
    monkeypatch.setitem(ENVIRONMENT, "HOROVOD_CONTROLLER", "gloo")
    done = run("glpilot", "doctor")
    assert done.returncode == 1 and "wrong: HOROVOD_CONTROLLER" in done.stdout, done.stdout + done.stderr
