"""The entry point: help, version, and that a user's mistake becomes one line and exit code 2."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.metadata import version

import pytest

from glpilot.app import cli
from glpilot.app.commands import partition
from glpilot.app.config import keys as configuration
from glpilot.data.errors import UserError
from helpers.command_line import run_command


def glpilot(*arguments) -> subprocess.CompletedProcess:
    """The program as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "glpilot.app.cli", *map(str, arguments)], capture_output=True, text=True, timeout=60
    )


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as end:
        cli.build_parser().parse_args(["--help"])
    out = capsys.readouterr().out
    assert end.value.code == 0
    for command in cli.COMMANDS:
        assert f"\n    {command}" in out


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_of_a_command(command, capsys):
    with pytest.raises(SystemExit) as end:
        cli.build_parser().parse_args([command, "--help"])
    out = capsys.readouterr().out
    assert end.value.code == 0
    assert f"usage: glpilot {command}" in out
    summary = import_module(f"glpilot.app.commands.{cli.COMMANDS[command]}").SUMMARY
    assert summary.split()[0] in out and summary.split()[-1] in out


def test_help_of_train_names_every_key_with_its_default(capsys):
    with pytest.raises(SystemExit):
        cli.build_parser().parse_args(["train", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    for key, _ in configuration.list_keys():
        assert f"--{key} VALUE" in out
    assert "(default: 10,10)" in out


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from glpilot.app import cli; cli.build_parser(); "
        "print(sorted({'torch', 'dgl', 'mpi4py', 'horovod', 'numba', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_version():
    done = glpilot("--version")
    assert (done.returncode, done.stdout) == (0, f"glpilot {version('glpilot')}\n")


@pytest.mark.parametrize(
    "arguments", [[], ["frobnicate"], ["train", "parts"], ["train", "parts", "--run", "a", "--nonsense"]]
)
def test_wrong_command_line_is_one_line_and_2(arguments):
    code, out, err = run_command(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("glpilot: ") and "--help" in err


def test_unknown_command_is_told_which_there_are():
    done = glpilot("frobnicate")
    assert done.returncode == 2 and done.stdout == ""
    assert "'frobnicate'" in done.stderr and all(command in done.stderr for command in cli.COMMANDS)


def test_options_are_not_abbreviated():
    """An abbreviation that works today would change its meaning with the next option."""
    assert run_command("partition", "graph.h5", "parts", "--part", "2")[0] == 2


@pytest.mark.parametrize(
    "environment, lines",
    [
        ({"PMI_RANK": "0"}, 1),
        ({"PMI_RANK": "1"}, 0),
        ({"OMPI_COMM_WORLD_RANK": "3"}, 0),
        ({"SLURM_PROCID": "2"}, 0),
        ({"PMI_RANK": "0", "SLURM_PROCID": "2"}, 1),  # mpirun on the third node of a Slurm job
    ],
)
def test_a_mistake_of_all_ranks_is_printed_once(environment, lines, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    code, _, err = run_command("train", "parts")
    assert (code, err.count("\n")) == (2, lines)


def test_users_mistake_is_one_line_and_2(tmp_path):
    done = glpilot("partition", tmp_path / "nowhere.h5", tmp_path / "parts", "--parts", 2)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"glpilot partition: {tmp_path}/nowhere.h5: no such file")


def test_wrong_config_is_one_line_and_2(tmp_path):
    done = glpilot("train", tmp_path, "--run", tmp_path / "run", "--train.lr", "-1", "--model.name", "mlp")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "train.lr" in done.stderr and "model.name" in done.stderr and "'mlp'" in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("returned, expected", [(None, 0), (0, 0), (1, 1), (75, 75)])
def test_exit_code_of_a_command_is_passed_on(returned, expected, monkeypatch):
    monkeypatch.setattr(partition, "run", lambda arguments: returned)
    assert run_command("partition", "graph.h5", "parts", "--parts", 2)[0] == expected


def test_a_mistake_names_the_command(monkeypatch):
    def fail(arguments):
        raise UserError("it does not fit")

    monkeypatch.setattr(partition, "run", fail)
    assert run_command("partition", "graph.h5", "parts", "--parts", 2) == (
        2,
        "",
        "glpilot partition: it does not fit\n",
    )


def test_a_fault_is_not_taken_for_a_mistake(monkeypatch):
    def fail(arguments):
        raise RuntimeError("ours")

    monkeypatch.setattr(partition, "run", fail)
    with pytest.raises(RuntimeError, match="ours"):
        run_command("partition", "graph.h5", "parts", "--parts", 2)


def test_reader_that_goes_away_leaves_no_traceback():
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m glpilot.app.cli train --help | head -n 1; exit ${{PIPESTATUS[1]}}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "error, code, message",
    [
        (ModuleNotFoundError("No module named 'horovod'"), 2, "No module named 'horovod'; set the environment up with"),
        (OSError(28, "No space left on device", "/runs/a"), 2, "/runs/a: No space left on device"),
        (MemoryError("Unable to allocate 1 TiB"), 1, "not enough memory (Unable to allocate 1 TiB)"),
    ],
)
def test_what_the_environment_lacks_is_one_line(monkeypatch, error, code, message):
    def fail(arguments):
        raise error

    monkeypatch.setattr(partition, "run", fail)
    found, out, err = run_command("partition", "graph.h5", "parts", "--parts", 2)
    assert (found, out, err.count("\n")) == (code, "", 1)
    assert err.startswith(f"glpilot partition: {message}")
