"""metrics.jsonl is cut back to where a resumed run goes on; progress shows what was asked for."""

from __future__ import annotations

import json
import sys

import pytest

from glpilot.app.results.metrics import MetricsWriter
from glpilot.app.results.progress import Progress
from glpilot.data.errors import UserError


def read(run) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def write_steps(run, keep_bytes: int, steps) -> list[int]:
    """Write a record per step and close; the file's length after each."""
    writer = MetricsWriter(run, keep_bytes, use_tensorboard=False)
    lengths = []
    for step in steps:
        writer.write({"step": step, "epoch": 1, "loss": step / 4})
        lengths.append(writer.flush())
    writer.close()
    return lengths


def test_one_object_a_line(tmp_path):
    lengths = write_steps(tmp_path, 0, [1, 2])
    assert read(tmp_path) == [{"step": 1, "epoch": 1, "loss": 0.25}, {"step": 2, "epoch": 1, "loss": 0.5}]
    assert lengths[-1] == (tmp_path / "metrics.jsonl").stat().st_size


def test_what_came_after_the_checkpoint_is_cut_off(tmp_path):
    lengths = write_steps(tmp_path, 0, [1, 2, 3, 4])
    resumed = write_steps(tmp_path, lengths[1], [3, 4, 5])
    assert [record["step"] for record in read(tmp_path)] == [1, 2, 3, 4, 5]
    assert resumed[1] == lengths[3]


def test_resuming_just_where_it_ended_cuts_nothing(tmp_path):
    lengths = write_steps(tmp_path, 0, [1, 2])
    write_steps(tmp_path, lengths[1], [])
    assert [record["step"] for record in read(tmp_path)] == [1, 2]


def test_half_a_line_at_the_end_is_cut_off(tmp_path):
    lengths = write_steps(tmp_path, 0, [1])
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"step": 2, "lo')
    write_steps(tmp_path, lengths[0], [2])
    assert [record["step"] for record in read(tmp_path)] == [1, 2]


def test_a_new_run_begins_an_empty_file(tmp_path):
    write_steps(tmp_path, 0, [1, 2])
    write_steps(tmp_path, 0, [7])
    assert [record["step"] for record in read(tmp_path)] == [7]


def test_a_file_shorter_than_the_checkpoint_says_is_kept_whole(tmp_path):
    lengths = write_steps(tmp_path, 0, [1])
    resumed = write_steps(tmp_path, lengths[0] + 1000, [2])
    assert [record["step"] for record in read(tmp_path)] == [1, 2]
    assert resumed[0] == (tmp_path / "metrics.jsonl").stat().st_size


def test_what_was_flushed_is_on_disk_before_the_end(tmp_path):
    writer = MetricsWriter(tmp_path, 0, use_tensorboard=False)
    writer.write({"step": 1})
    assert writer.flush() == (tmp_path / "metrics.jsonl").stat().st_size > 0
    writer.close()


@pytest.mark.parametrize("value", [0.1, 1e-30, 123456.789, 2.0 / 3.0])
def test_losses_lose_no_bit(tmp_path, value):
    writer = MetricsWriter(tmp_path, 0, use_tensorboard=False)
    writer.write({"step": 1, "loss": value})
    writer.close()
    assert read(tmp_path)[0]["loss"] == value


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(UserError, match=r"cannot write .*metrics\.jsonl"):
        MetricsWriter(tmp_path / "none", 0, use_tensorboard=False)


def test_tensorboard_gets_the_numbers(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    writer = MetricsWriter(tmp_path, 0, use_tensorboard=True)
    writer.write({"step": 3, "epoch": 1, "loss": 0.5})
    writer.flush()
    writer.close()
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(3, 0.5)]


def test_tensorboard_that_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(UserError, match="run.tensorboard: .*not installed"):
        MetricsWriter(tmp_path, 0, use_tensorboard=True)


def show_epoch(setting: str) -> None:
    progress = Progress(setting)
    progress.say("begin")
    progress.start_epoch(2, 5, 1, 3)
    progress.advance(0.75)
    progress.advance(0.5)
    progress.end_epoch("epoch 2 done")
    progress.start_epoch(3, 5, 0, 3)
    progress.end_epoch("epoch 3 done")


@pytest.mark.parametrize(
    "setting, has_bar, has_lines",
    [
        ("bar", True, True),
        ("lines", False, True),
        ("none", False, False),
        ("auto", False, True),
    ],
)
def test_progress(capsys, setting, has_bar, has_lines):
    show_epoch(setting)
    shown = capsys.readouterr()
    assert shown.out == ("begin\nepoch 2 done\nepoch 3 done\n" if has_lines else "")
    assert ("epoch 2/5" in shown.err and "1/3" in shown.err) if has_bar else shown.err == ""


def test_progress_shows_a_bar_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    show_epoch("auto")
    assert "epoch 2/5" in capsys.readouterr().err
