import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies

from glpilot.data.errors import UserError
from glpilot.data.sealed_json import write_sealed
from glpilot.partition.book import FILE_NAME, PartitionBook, read_book, write_book

BOOK = PartitionBook(
    graph_hash="0123",
    num_nodes=10,
    num_edges=24,
    num_classes=3,
    num_features=0,
    is_multilabel=False,
    is_directed=False,
    method="metis",
    seed=1,
    offsets=(0, 4, 4, 10),
    edge_cut=5,
    balance={"nodes": 1.8, "edges": 1.5, "train_nodes": 1.0},
    replication=1.3,
    dtype_bits=32,
)


def test_reads_what_was_written(tmp_path):
    write_book(tmp_path, BOOK)
    assert read_book(tmp_path) == BOOK
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


@given(strategies.lists(strategies.integers(0, 4), min_size=1, max_size=6).filter(any))
def test_part_of_is_a_look_through_the_ranges(sizes):
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    book = replace(BOOK, num_nodes=int(offsets[-1]), offsets=tuple(offsets.tolist()))
    expected = [part for part, size in enumerate(sizes) for _ in range(size)]
    assert book.num_parts == len(sizes)
    assert book.part_of(np.arange(book.num_nodes)).tolist() == expected


@pytest.mark.parametrize(
    "change, message",
    [
        ({"format_version": 99}, "expected format version 1, found 99"),
        ({"offsets": [0, 4, 9]}, "do not cover"),
        ({"offsets": [1, 4, 10]}, "do not cover"),
        ({"offsets": [0, 6, 4, 10]}, "do not cover"),
        ({"offsets": [10]}, "do not cover"),
        ({"offsets": ["a", "b"]}, "not a partition book"),
        ({"offsets": 5}, "not a partition book"),
        ({"extra": 1}, "not a partition book"),
    ],
)
def test_a_damaged_book_is_refused(tmp_path, change, message):
    write_book(tmp_path, BOOK)
    path = tmp_path / FILE_NAME
    content = {**json.loads(path.read_text()), **change}
    version, _ = content.pop("format_version"), content.pop("checksum")
    write_sealed(path, version, content)
    with pytest.raises(UserError, match=message):
        read_book(tmp_path)


@pytest.mark.parametrize("change", [{"num_features": 3}, {"edge_cut": 4}, {"offsets": [0, 5, 5, 10]}, {"extra": 1}])
def test_a_book_that_was_edited_is_refused(tmp_path, change):
    write_book(tmp_path, BOOK)
    path = tmp_path / FILE_NAME
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(UserError, match="does not have its checksum.*run glpilot partition again"):
        read_book(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"format_version": 1', "\x00\xff"])
def test_what_is_no_book_is_refused(tmp_path, text):
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(UserError, match="cannot be read"):
        read_book(tmp_path)


def test_a_missing_book_says_how_to_make_one(tmp_path):
    with pytest.raises(UserError, match="glpilot partition graph.h5"):
        read_book(tmp_path)
