"""The program under its launchers: what users type, how it ends, and what the other ranks do when one is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest

from helpers.launch import CHECKOUT, ENVIRONMENT, LIMIT_SECONDS, LONGER_FLAGS, TRAIN_FLAGS, losses_of, run, run_ranks


@pytest.fixture(scope="module")
def four_ranks(parts):
    """A run of four ranks that has stopped in the middle of its second epoch."""
    folder = parts.parent / "four"
    done = run_ranks(4, "glpilot", "train", parts, "--run", folder, *TRAIN_FLAGS, "--run.stop_after_steps", 3)
    assert done.returncode == 75, done.stderr
    return folder


def one_line_of(done: subprocess.CompletedProcess) -> str:
    """The program's only line on stderr; launchers may add theirs."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("glpilot")]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0]


def test_horovodrun_trains_as_mpirun_does(parts, run_on_one_host, tmp_path):
    folder = tmp_path / "run"
    flags = (*LONGER_FLAGS, "--preset", "synchronous")
    done = run("horovodrun", "-np", 2, "glpilot", "train", parts, "--run", folder, *flags)
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "summary.json").read_text())["world_size"] == 2
    assert losses_of(folder) == losses_of(run_on_one_host(2))


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_a_checkpoint_of_four_ranks_resumes_on_fewer(four_ranks, parts, num_ranks, tmp_path):
    checkpoint = four_ranks / "checkpoints" / "step-3"
    folder = tmp_path / "run"
    done = run_ranks(num_ranks, "glpilot", "train", parts, "--run", folder, "--resume", checkpoint, *TRAIN_FLAGS)
    assert done.returncode == 0, done.stderr
    assert "resumed from" in done.stdout
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["world_size"], summary["epochs"]) == (num_ranks, 2)
    assert np.mean(losses_of(folder)) < losses_of(four_ranks)[0]
    scored = run_ranks(3 - num_ranks, "glpilot", "evaluate", folder)
    assert scored.returncode == 0, scored.stderr
    assert json.loads(scored.stdout)["test_accuracy"] == pytest.approx(summary["test_accuracy"])


def test_export_on_another_number_of_ranks_gives_the_same_file(four_ranks, tmp_path):
    for num_ranks in (1, 2):
        done = run_ranks(num_ranks, "glpilot", "export", four_ranks, tmp_path / f"{num_ranks}.csv")
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--model.name", "mlp"], "model.name"),
        (["--nonsense"], "--nonsense"),
        (["--resume", "nowhere"], "nowhere"),
        (["--run", "/proc/run"], "/proc/run"),
    ],
)
def test_a_mistake_is_one_line_of_one_rank(parts, tmp_path, arguments, message):
    done = run_ranks(2, "glpilot", "train", parts, "--run", tmp_path / "run", *arguments)
    assert done.returncode == 2
    assert message in one_line_of(done)


def test_ranks_that_do_not_divide_the_parts_are_told_so(parts, tmp_path):
    done = run_ranks(3, "glpilot", "train", parts, "--run", tmp_path / "run")
    assert done.returncode == 2
    assert "4 parts and 3 ranks" in one_line_of(done)


def test_a_run_that_holds_checkpoints_is_not_overwritten(four_ranks, parts):
    before = (four_ranks / "metrics.jsonl").read_bytes()
    done = run_ranks(2, "glpilot", "train", parts, "--run", four_ranks, *TRAIN_FLAGS)
    assert done.returncode == 2 and "--resume auto" in one_line_of(done)
    assert (four_ranks / "metrics.jsonl").read_bytes() == before


def test_a_killed_rank_ends_all(parts, tmp_path):
    folder = tmp_path / "run"
    train = ("glpilot", "train", parts, "--run", folder, *TRAIN_FLAGS, "--train.epochs", "100000")
    command = ("bash", CHECKOUT / "jobs/mpi.sh", 2, *train)
    job = subprocess.Popen(
        [str(word) for word in command],
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + LIMIT_SECONDS
        while not (folder / "checkpoints").exists() and job.poll() is None and time.monotonic() < until:
            time.sleep(0.1)  # until it trains
        ranks = ranks_of(job.pid)
        assert len(ranks) == 2
        os.kill(ranks[1], signal.SIGKILL)
        job.communicate(timeout=30)
        assert job.returncode != 0
        assert not [rank for rank in ranks if is_running(rank)]
    finally:
        job.kill()


def ranks_of(launcher: int) -> list[int]:
    """The processes below a launcher that run the program."""
    found, waiting = [], [launcher]
    while waiting:
        pid = waiting.pop()
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                waiting += [int(child) for child in file.read().split()]
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
        if b"train" in words and b"python" in words[0]:
            found.append(pid)
    return sorted(found)


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
