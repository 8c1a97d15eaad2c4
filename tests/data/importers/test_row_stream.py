"""What is wrong is found wherever the chunks' ends fall."""

import gzip

import pytest

from glpilot.data.errors import UserError
from glpilot.data.importers import row_stream
from glpilot.data.importers.columns import EDGE_ROLES
from glpilot.data.importers.csv_table import open_table
from glpilot.data.importers.table_ids import read_ids
from glpilot.data.importers.table_options import TableOptions

ROWS = [f"{number},{number + 1}" for number in range(60)]


def read(path, text, options=None):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    table = open_table(path, EDGE_ROLES, options or TableOptions())
    return read_ids(table, [0, 1], "auto"), table.account


@pytest.fixture(params=[1, 7, 64, 1 << 18])
def chunks(request, monkeypatch):
    monkeypatch.setattr(row_stream, "CHUNK_BYTES", request.param)


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_rows_are_the_same(tmp_path, end):
    text = end.join(["src,dst", *ROWS])
    for content in (text, text + end, gzip.compress(text.encode())):
        (src, dst), account = read(tmp_path / "edges.csv", content)
        assert src.tolist() == list(range(60)) and dst.tolist() == list(range(1, 61))
        assert account.num_rows == 60 and set(account.skipped) <= {"blank"}


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize(
    "row, expected",
    [
        ("1\x0b,2", "column 2: expected printable text, found U+000B"),
        ("é,\x852", "column 3: expected printable text, found U+0085"),
        ("1,2\r3", "column 4: expected printable text, found U+000D"),
        ("#1,2", "begins with '#'"),
        ('1,"2', "column 3: expected fields"),
        ("1,2,3", "expected 2 fields, as in the header, found 3"),
        ("12", "no value for 'dst'"),
        ("1,", "no value for 'dst'"),
        ("1,x", "'x' is not an integer"),
        ("1,0x2", "'0x2' is not an integer"),
        (b"1,\xff", "not UTF-8"),
    ],
)
def test_the_line_is_named(tmp_path, row, expected):
    for place in (0, 20, 60):
        rows = [line.encode() for line in ROWS]
        rows.insert(place, row if isinstance(row, bytes) else row.encode())
        with pytest.raises(UserError) as error:
            read(tmp_path / "edges.csv", b"\n".join([b"src,dst", *rows]))
        assert f"edges.csv, line {place + 2}" in str(error.value) and expected in str(error.value)


@pytest.mark.usefixtures("chunks")
def test_comments_are_left_out_and_lines_still_counted(tmp_path):
    options = TableOptions(comments=("#",))
    lines = ["# 1", "src,dst", "#", *ROWS[:30], "# x", "#y", *ROWS[30:], "#"]
    (src, _), account = read(tmp_path / "edges.csv", "\n".join(lines), options)
    assert src.tolist() == list(range(60)) and account.skipped == {"comment": 5}
    with pytest.raises(UserError, match="line 35, column 1: .*U\\+0007"):
        read(tmp_path / "edges.csv", "\n".join([*lines[:34], "\x07", *lines[34:]]), options)


def test_a_line_without_end(tmp_path):
    with pytest.raises(UserError, match="line 2: expected a row, found a line of more than"):
        read(tmp_path / "edges.csv", "src,dst\n" + "1" * (3 << 20))
