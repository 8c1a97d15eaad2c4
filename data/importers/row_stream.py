"""The rows of a table on their way to pandas: chunks of whole lines, looked through as they pass.

What is wrong by itself is refused here. What may be wrong is counted or marked, for `row_blame.py` to look at line by
line. So nothing here goes from row to row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .characters import CONTROLS, FORBIDDEN_BEYOND_ASCII, check_characters
from .first_lines import COMMENT_MARKS, Layout, refused_comment
from .table_options import TableOptions
from .text_file import check_length

CHUNK_BYTES = 1 << 18
ALL_BUT_CONTROLS = bytes(sorted(set(range(256)) - set(CONTROLS)))
LINE_FEED, QUOTE, ZERO = b'\n"0'
BLANK_BYTES = b" \t"


class RowStream:
    """A file for pandas to read: its rows, without header and comments.

    Attributes:
        num_lines: passed so far, without comments.
        num_separators: passed so far, outside of quotes.
        num_comments: lines left out.
        has_quotes: there is a quote somewhere.
        is_doubtful: quotes or backslashes stand where they may mean something else.
        has_blanks: there may be blanks around a value.
        has_leading_zeros: there may be integers with leading zeros, of which several spell the same.
    """

    def __init__(self, path: Path, file: BinaryIO, layout: Layout, options: TableOptions) -> None:
        self.num_lines = self.num_separators = self.num_comments = 0
        self.has_quotes = self.is_doubtful = self.has_blanks = self.has_leading_zeros = False
        self._path, self._file, self._first_row = path, file, layout.first_row
        self._separator = layout.separator.encode()
        self._blank_pairs = _blank_pairs(self._separator)
        wished = [mark.encode() for mark in options.comments or ()]
        self._comment = re.compile(b"^(?:%s)[^\n]*\n?" % b"|".join(map(re.escape, wished)), re.M) if wished else None
        self._refused = [] if options.comments == () else [mark.encode() for mark in COMMENT_MARKS]
        for _ in range(layout.first_row - 1):
            file.readline()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.read, b"")

    def read(self, _size: int = -1) -> bytes:
        """The next lines; nothing at the end of the file.

        Raises:
            UserError: a line has a character that has no place in a table, or is a comment that nothing was said of.
        """
        while chunk := self._file.read(CHUNK_BYTES):
            if not chunk.endswith(b"\n"):
                rest = self._file.readline(1 << 20)
                check_length(self._path, self._line + chunk.count(b"\n"), rest)
                chunk += rest
            self._check_characters(chunk)
            chunk = self._without_comments(chunk)
            if chunk:
                self._look_through(chunk)
                return chunk
        return b""

    @property
    def _line(self) -> int:
        """The number of the next line of the file."""
        return self._first_row + self.num_lines + self.num_comments

    def _check_characters(self, chunk: bytes) -> None:
        is_wrong = bool(chunk.translate(None, ALL_BUT_CONTROLS))
        if not is_wrong and b"\r" in chunk:
            is_wrong = chunk.count(b"\r") != chunk.count(b"\r\n")
        if not is_wrong and not chunk.isascii():
            try:
                is_wrong = FORBIDDEN_BEYOND_ASCII.search(chunk.decode()) is not None
            except UnicodeDecodeError:
                is_wrong = True
        if is_wrong:
            for number, line in enumerate(chunk.split(b"\n"), start=self._line):
                check_characters(self._path, number, line.removesuffix(b"\r") if b"\r\r" not in line else line)
            check_characters(self._path, number, line)  # a return at the end of the file

    def _without_comments(self, chunk: bytes) -> bytes:
        whole, start = chunk, self._line
        if self._comment is not None:
            chunk, found = self._comment.subn(b"", chunk)
            self.num_comments += found
        for mark in self._refused:
            if mark in chunk and (chunk.startswith(mark) or b"\n" + mark in chunk):
                for number, line in enumerate(whole.split(b"\n"), start=start):
                    if line.startswith(mark) and not (self._comment and self._comment.match(line)):
                        raise refused_comment(self._path, number, mark.decode())
        return chunk

    def _look_through(self, chunk: bytes) -> None:
        codes = np.frombuffer(chunk, dtype=np.uint8)  # counts faster than bytes do
        self.num_lines += np.count_nonzero(codes == LINE_FEED) + (not chunk.endswith(b"\n"))
        if b'"' in chunk:
            self.has_quotes = True
            self.num_separators += self._look_at_quotes(chunk)
        else:
            self.num_separators += np.count_nonzero(codes == self._separator[0])
        if b"\\" in chunk and (b'\\"' in chunk or b"\\" + self._separator in chunk):
            self.is_doubtful = True
        if not self.has_blanks and (b" " in chunk or b"\t" in chunk):
            self.has_blanks = chunk[:1] in (b" ", b"\t") or any(pair in chunk for pair in self._blank_pairs)
        if not self.has_leading_zeros:
            self.has_leading_zeros = _has_leading_zeros(chunk)

    def _look_at_quotes(self, chunk: bytes) -> int:
        """Mark doubtful quotes; returns the number of separators outside of quotes."""
        codes = np.frombuffer(b"\n" + chunk + b"\n", dtype=np.uint8)
        quotes = np.flatnonzero(codes == QUOTE)
        if len(quotes) % 2 or (np.searchsorted(quotes, np.flatnonzero(codes == LINE_FEED)) % 2).any():
            self.is_doubtful = True
            return 0
        edges = np.frombuffer(self._separator + b'\n\r"', dtype=np.uint8)
        is_plain = np.isin(codes[quotes[0::2] - 1], edges).all() and np.isin(codes[quotes[1::2] + 1], edges).all()
        self.is_doubtful |= not is_plain
        return int(np.count_nonzero(np.searchsorted(quotes, np.flatnonzero(codes == self._separator[0])) % 2 == 0))


def _has_leading_zeros(chunk: bytes) -> bool:
    codes = np.frombuffer(b"\n" + chunk, dtype=np.uint8)
    is_leading = (codes[1:-1] == ZERO) & (codes[:-2] < ZERO) & (codes[2:] >= ZERO) & (codes[2:] < ZERO + 10)
    return bool(is_leading.any())


def _blank_pairs(separator: bytes) -> list[bytes]:
    """What there is where a blank stands at either end of a value."""
    pairs = []
    for blank in (b" ", b"\t"):
        if blank != separator:
            for edge in (separator, b"\n", b'"'):
                pairs += [edge + blank, blank + edge]
            pairs.append(blank + b"\r")
    return pairs
