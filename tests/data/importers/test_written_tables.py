"""Whatever csv.writer, pandas and numpy write is read to the same edges, or refused: never to others.

A small share of examples runs with the suite; GLPILOT_EXAMPLES=5000 asks for more, other ones each time.
"""

from __future__ import annotations

import csv
import faulthandler
import io
import os
from unittest import mock

import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from glpilot.data.errors import UserError
from glpilot.data.importers import row_stream
from glpilot.data.importers.columns import EDGE_ROLES, PAIRS
from glpilot.data.importers.edge_table import read_edges
from glpilot.data.importers.table_options import TableOptions

NUM_EXAMPLES = os.environ.get("GLPILOT_EXAMPLES")


@pytest.fixture(autouse=True)
def patience():
    """Many examples take longer than a test may."""
    if NUM_EXAMPLES is not None:
        faulthandler.cancel_dump_traceback_later()


many = settings(
    max_examples=int(NUM_EXAMPLES or 150),
    derandomize=NUM_EXAMPLES is None,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much, HealthCheck.too_slow],
)
READ = ",\t;|"  # separators that are found
KNOWN = {name for role in EDGE_ROLES for name in role.known}

plain = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)
nasty = st.text(st.sampled_from("\"',;\t| \\#%+-.0123eEab\n\r\u00a0\u2028\x85\x1b\ufeff\uff11"), min_size=1, max_size=4)
numerals = st.from_regex(r"\A[+-]?[0-9]{1,3}(\.0|e1)?\Z")
names = st.one_of(st.sampled_from(["a", "b", "NA", "7"]), plain, nasty, numerals)
integers = st.one_of(st.integers(0, 20), st.integers(-(2**63), 2**63 - 1), st.integers(-(10**7), 10**7))
separators = st.sampled_from([",", ",", ";", "\t", "|", " ", ":"])
encodings = st.sampled_from(["utf-8"] * 6 + ["utf-8-sig", "utf-16", "utf-16-le", "latin-1"])


def pairs_of(ids):
    """Edges, of few ids so that these occur several times."""
    return st.lists(ids, min_size=1, max_size=4).flatmap(
        lambda some: st.lists(st.tuples(st.sampled_from(some), st.sampled_from(some)), min_size=1, max_size=6)
    )


def check(folder, content: bytes, edges: list, has_header: bool, columns, draw) -> None:
    """Read the file; edges are pairs of ids, columns the numbers of theirs from 1."""
    path = folder / "edges.csv"
    path.write_bytes(content)
    kind = draw(st.sampled_from(["auto", "auto", "string"])) if isinstance(edges[0][0], str) else "auto"
    chosen = {} if has_header else {"source": str(columns[0]), "target": str(columns[1])}
    comments = draw(st.sampled_from([None, None, ()]))
    options = TableOptions(chosen, has_header, comments)
    try:
        with mock.patch.object(row_stream, "CHUNK_BYTES", draw(st.sampled_from([1 << 18, 1, 9]))):
            nodes, src, dst = read_edges(path, None, kind, None, options)
    except UserError as error:
        event("refused")
        assert str(error).isprintable() and len(str(error)) < 1000
        return
    event("read")
    found = list(zip(nodes.values[src].tolist(), nodes.values[dst].tolist()))
    given_ids = {id_ for edge in edges for id_ in edge}
    if nodes.are_integers:
        edges = [(as_integer(source), as_integer(target)) for source, target in edges]
        given_ids = {plain_integer(str(id_)) for id_ in given_ids}
    assert found == [tuple(strip(id_) for id_ in edge) for edge in edges]
    assert len(nodes) == len(given_ids)


def strip(id_):
    return id_.strip(" \t") if isinstance(id_, str) else id_


def as_integer(id_) -> int:
    return int(float(id_)) if isinstance(id_, str) and "." in id_ else int(id_)


def plain_integer(text: str) -> str:
    """Signs do not tell integers apart, leading zeros may."""
    text = text.strip(" \t").removeprefix("+")
    return text.removeprefix("-") if not text.strip("-0") else text


def encode(text: str, encoding: str) -> bytes:
    """Bytes in an encoding that can be told from UTF-8 or is the same."""
    try:
        content = text.encode(encoding)
    except UnicodeEncodeError:
        assume(False)
    assume(encoding != "latin-1" or text.isascii() or not _is_utf8(content))
    return content


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def assume_it_can_be_told(edges, has_header, separator) -> None:
    """Leave out what nobody could tell from the file alone."""
    ids = {str(id_) for edge in edges for id_ in edge}
    assume(not any(id_.strip().lower() in KNOWN for id_ in ids))  # the header again, or a header
    if separator not in READ and not has_header:
        assume(not any(other in id_ for id_ in ids for other in READ))


@many
@given(st.data())
def test_csv_writer(tmp_path, data):
    draw = data.draw
    edges, separator, has_header = draw(pairs_of(st.one_of(names, integers))), draw(separators), draw(st.booleans())
    edges = [(str(source), str(target)) for source, target in edges]
    assume_it_can_be_told(edges, has_header, separator)
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC, csv.QUOTE_NONE]))
    quote, escape = draw(st.sampled_from('""""\'')), draw(st.sampled_from([None, None, "\\"]))
    ids = [id_ for edge in edges for id_ in edge]
    assume(quote == '"' or not any(id_.lstrip(" \t").startswith('"') for id_ in ids))
    assume(escape is None or not any(escape in id_ for id_ in ids))
    extra = draw(st.sampled_from(["", "before", "between", "behind"]))
    file = io.StringIO(newline="")
    writer = csv.writer(
        file,
        delimiter=separator,
        quoting=quoting,
        quotechar=quote,
        escapechar=escape,
        doublequote=escape is None or draw(st.booleans()),
        lineterminator=draw(st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n", " \n", "\x1e"])),
    )
    position = {"": None, "before": 0, "between": 1, "behind": 2}[extra]

    def row(ends, value):
        return ends if position is None else [*ends[:position], value, *ends[position:]]

    try:
        if has_header:
            writer.writerow(row(list(draw(st.sampled_from(PAIRS))), "extra"))
        for edge in edges:
            writer.writerow(row(list(edge), draw(st.sampled_from(["", 5, 0.5, "x, y", "2020-01-01"]))))
    except csv.Error:
        assume(False)
    columns = {"": (1, 2), "before": (2, 3), "between": (1, 3), "behind": (1, 2)}[extra]
    check(tmp_path, encode(file.getvalue(), draw(encodings)), edges, has_header, columns, draw)


@many
@given(st.data())
def test_pandas(tmp_path, data):
    draw = data.draw
    kind = draw(st.sampled_from(["int64", "float64", "object"]))
    edges = draw(pairs_of(names if kind == "object" else integers))
    if kind == "float64":
        edges = [(int(float(source)), int(float(target))) for source, target in edges]
    separator, has_header, has_index = draw(separators), draw(st.booleans()), draw(st.booleans())
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC, csv.QUOTE_NONE]))
    assume_it_can_be_told(edges, has_header, separator)
    if kind == "object" and quoting == csv.QUOTE_NONE:  # it writes quotes as they are
        assume(not any(id_.lstrip(" \t").startswith('"') for edge in edges for id_ in edge))
    frame = pandas.DataFrame(
        {name: pandas.Series(ends, dtype=kind) for name, ends in zip(draw(st.sampled_from(PAIRS)), zip(*edges))}
    )
    decimal = draw(st.sampled_from([".", ".", ","]))
    assume(has_header or decimal == "." or separator in READ)
    try:
        text = frame.to_csv(
            sep=separator,
            quoting=quoting,
            index=has_index,
            header=has_header,
            index_label=draw(st.sampled_from([None, None, "weight", False])) if has_index else None,
            lineterminator=draw(st.sampled_from(["\n", "\n", "\r\n", "\r"])),
            float_format=draw(st.sampled_from([None, "%.0f", "%.2f", "%g", "%.3e", "%.18e", "%8.1f", "%.3g"])),
            decimal=decimal,
        )
    except csv.Error:
        assume(False)
    content = encode(text, draw(encodings))
    check(tmp_path, content, edges, has_header, (2, 3) if has_index else (1, 2), draw)


@many
@given(st.data())
def test_savetxt(tmp_path, data):
    draw = data.draw
    is_text = draw(st.booleans())
    separator, newline = draw(separators), draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    edges = draw(pairs_of(names if is_text else integers))
    header = draw(st.sampled_from(["", "src" + separator + "dst"]))
    comments = draw(st.sampled_from(["# ", "", "%", "// "]))
    has_header = bool(header) and not comments
    assume_it_can_be_told(edges, has_header, separator)
    formats = ["%s"]
    if is_text:  # what stands in it is written as it is
        ids = [id_ for edge in edges for id_ in edge]
        assume(not any(id_.lstrip(" \t").startswith('"') or set(id_) & {*separator, "\n"} for id_ in ids))
    else:
        formats = ["%.18e", "%d", "%i", "%5d", "%05d", "%g", "%.3e", "%.1f", "%s", "%+d", "%.3g"]
    array = np.array(edges, dtype=object if is_text else np.int64).reshape(-1, 2)
    buffer = io.StringIO(newline="")
    np.savetxt(
        buffer,
        array,
        fmt=draw(st.sampled_from(formats)),
        delimiter=separator,
        newline=newline,
        header=header,
        footer=draw(st.sampled_from(["", "", "the end"])),
        comments=comments,
    )
    check(tmp_path, encode(buffer.getvalue(), draw(encodings)), edges, has_header, (1, 2), draw)
