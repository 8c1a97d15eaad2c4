"""Exported ids come back exactly, whatever they are made of."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glpilot.app.graph.dataset import load_dataset
from glpilot.app.results.export import json_line, quote, write_rows
from helpers.runs import labelled_graph, write_parts

ODD = [
    " ",
    "",
    "a,b",
    'say "hi"',
    '"',
    "line\nbreak",
    "lone\rreturn",
    "both\r\n",
    "next\x85line",
    "\u2028",
    "\u00a0",
    "007",
]
# No surrogates: files hold UTF-8. No NUL: HDF5's strings end at one.
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8) | st.sampled_from(ODD)


@given(ids=st.lists(names | st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_ids_beside_an_array_are_read_back_exactly(ids):
    lines = io.TextIOWrapper(io.BytesIO("".join(map(json_line, ids)).encode()), encoding="utf-8")
    assert [json.loads(line) for line in lines] == ids


@given(ids=st.lists(names, max_size=20))
def test_ids_in_csv_are_read_back_exactly(ids):
    text = "".join(f"{quote(name)},0.5,1\n" for name in ids)
    assert list(csv.reader(io.StringIO(text, newline=""))) == [[name, "0.5", "1"] for name in ids]


@pytest.mark.parametrize("suffix", [".csv", ".npy"])
@pytest.mark.mpi
def test_all_ranks_write_odd_ids(communicator, shared_folder, suffix):
    graph = labelled_graph()
    odd_ids = np.array([ODD[row % len(ODD)] + str(row) for row in range(graph.num_nodes)], object)
    graph = replace(graph, nodes=replace(graph.nodes, original_ids=odd_ids))
    dataset = load_dataset(communicator, write_parts(communicator, shared_folder, graph))
    row_of = {name: row for row, name in enumerate(odd_ids)}
    rows = np.array([row_of[name] for name in dataset.nodes.original_ids], np.float32).reshape(-1, 1)
    write_rows(communicator, dataset, rows, "embeddings", shared_folder / f"rows{suffix}")
    if suffix == ".npy":
        with open(shared_folder / "rows.npy.ids.jsonl") as lines:
            ids = [json.loads(line) for line in lines]
        values = np.load(shared_folder / "rows.npy")[:, 0]
    else:
        with open(shared_folder / "rows.csv", newline="", encoding="utf-8") as file:
            (_, *table) = csv.reader(file)
        ids, values = [line[0] for line in table], np.array([float(line[1]) for line in table])
    dataset.free()
    assert sorted(ids) == sorted(odd_ids)
    np.testing.assert_array_equal([row_of[name] for name in ids], values)
