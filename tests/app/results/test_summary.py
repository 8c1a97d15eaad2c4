"""The table at the end of a run, and the file it is made from."""

from __future__ import annotations

import json

import numpy as np
import pytest

from glpilot.app.embedding.copies.staleness import NUM_BINS
from glpilot.app.results.summary import by_powers_of_two, format_table, write_summary
from glpilot.app.runtime.clock import STAGES


def make_summary(**changes) -> dict:
    return {
        "world_size": 4,
        "hosts": 2,
        "parts": 8,
        "epochs": 3,
        "steps_per_epoch": 25,
        "val_accuracy": 0.91234,
        "test_accuracy": 0.5,
        "epoch_seconds": [9.0, 1.25, 1.0],
        "stage_seconds": {**dict.fromkeys(STAGES, 0.0), "sample": 1.0, "forward": 3.0},
        "rows_per_step": {
            "input": 12345.6,
            "hot": 0.0,
            "owned": 10000.0,
            "near": 0.0,
            "buffered": 0.0,
            "fetched": 2345.6,
        },
        "gradients_per_step": {"far": 0.0, "due": 0.0, "sent": 0.0},
        "bytes_per_step": {"fetch": 2.5e6, "sparse_sync": 1.25e6, "dense_sync": 1e4},
        "staleness": {"max_steps": 0, "mean_steps": 0.0, "max_missed_updates": 0, "mean_missed_updates": 0.0},
        "peak_memory_bytes": 3 << 30,
        **changes,
    }


def lines_of(summary: dict) -> dict[str, str]:
    """The table's lines, by what they are about; every line begins with two spaces and a name in 18 columns."""
    lines = format_table(summary).splitlines()
    assert all(line.startswith("  ") and line[20] == " " for line in lines)
    return {line[2:20].strip(): line[21:] for line in lines}


def test_a_table_of_a_run():
    assert lines_of(make_summary()) == {
        "ranks on hosts": "4 on 2",
        "epochs × steps": "3 × 25",
        "seconds per epoch": "1.250 (median)",
        "accuracy": "val 0.9123, test 0.5000",
        "time by stage": "sample 25%, forward 75%",
        "rows per step": "12,346 read: 10,000 owned, 2,346 fetched",
        "MB per step": "fetch 2.50, sparse_sync 1.25, dense_sync 0.01",
        "peak memory": "3,072 MiB (largest rank)",
    }


def test_a_table_of_a_run_with_all_techniques():
    lines = lines_of(
        make_summary(
            rows_per_step={"input": 100.0, "hot": 10.0, "owned": 40.0, "near": 20.0, "buffered": 25.0, "fetched": 5.0},
            gradients_per_step={"far": 30.0, "due": 20.0, "sent": 15.0},
            staleness={"max_steps": 32, "mean_steps": 9.87, "max_missed_updates": 70, "mean_missed_updates": 14.0},
        )
    )
    assert lines["rows per step"] == "100 read: 10 hot, 40 owned, 20 near, 25 buffered, 5 fetched"
    assert lines["gradients per step"] == "30 for other hosts, 15 sent"
    assert lines["staleness"] == "9.9 steps (at most 32), 14.0 updates missed (at most 70)"


@pytest.mark.parametrize(
    "histogram, expected",
    [
        ([], {}),
        ([3, 2, 1], {"0": 3, "1": 2, "2": 1}),
        ([0, 0, 0, 1, 1, 1, 0, 0, 5, 7], {"3-4": 2, "5-8": 6, "9-16": 7}),
    ],
)
def test_classes_by_powers_of_two(histogram, expected):
    counts = np.zeros(NUM_BINS, np.int64)
    counts[: len(histogram)] = histogram
    assert by_powers_of_two(counts) == expected


def test_the_last_class_is_open():
    counts = np.ones(NUM_BINS, np.int64)
    assert sum(by_powers_of_two(counts).values()) == NUM_BINS


def test_several_labels_per_node():
    scores = {"val_micro_f1": 0.4, "val_macro_f1": 0.25, "test_micro_f1": 0.375, "test_macro_f1": 0.2}
    lines = lines_of(make_summary(**scores))
    assert lines["micro-f1"] == "val 0.4000, test 0.3750" and lines["macro-f1"] == "val 0.2500, test 0.2000"


@pytest.mark.parametrize(
    "val, test, expected",
    [
        (None, 0.5, "test 0.5000"),
        (0.0, None, "val 0.0000"),
        (None, None, None),
    ],
)
def test_splits_without_nodes_are_left_out(val, test, expected):
    assert lines_of(make_summary(val_accuracy=val, test_accuracy=test)).get("accuracy") == expected


def test_a_run_without_steps():
    nothing = make_summary(
        epochs=0,
        epoch_seconds=[],
        stage_seconds=dict.fromkeys(STAGES, 0.0),
        rows_per_step=dict.fromkeys(("input", "hot", "owned", "near", "buffered", "fetched"), 0.0),
    )
    lines = lines_of(nothing)
    assert "seconds per epoch" not in lines and lines["time by stage"] == ""
    assert lines["rows per step"] == "0 read"


def test_the_file_holds_the_summary(tmp_path):
    write_summary(tmp_path, make_summary(epochs=1))
    write_summary(tmp_path, make_summary())  # of a resumed run, in its place
    assert json.loads((tmp_path / "summary.json").read_text()) == make_summary()
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]
