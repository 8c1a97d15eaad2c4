"""Numpy files: rows of floats for every node, and archives of arrays. Nothing here unpickles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..errors import UserError
from .text_file import check_file, one_line

CHECKED_ROWS = 1 << 16


def read_array(path: Path) -> np.ndarray:
    """Read a .npy file.

    Raises:
        UserError: there is no such file, or it is not .npy, or damaged, or holds Python objects.
    """
    check_file(path)
    try:
        array = np.load(path, allow_pickle=False)
    except Exception as error:  # a damaged header makes numpy raise whatever it likes
        raise UserError(f"{path}: not a readable .npy file of numbers ({one_line(error)})") from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise UserError(f"{path}: expected a .npy file with one array, found an .npz archive")
    return array


@contextmanager
def open_npz(path: Path) -> Iterator[np.lib.npyio.NpzFile]:
    """Open an .npz archive, to be read by `read_member`.

    Raises:
        UserError: there is no such file, or it is not an .npz archive.
    """
    check_file(path)
    try:
        file = np.load(path, allow_pickle=False)
    except Exception as error:  # a damaged header makes numpy raise whatever it likes
        raise UserError(f"{path}: not a readable .npz file ({one_line(error)})") from error
    if isinstance(file, np.ndarray):
        raise UserError(f"{path}: expected an .npz archive, found a single .npy array")
    with file:
        yield file


def read_member(path: Path, file: np.lib.npyio.NpzFile, name: str) -> np.ndarray:
    """Read one array of an .npz archive.

    Raises:
        UserError: the array is missing, damaged, or holds Python objects.
    """
    try:
        return file[name]
    except KeyError:
        raise UserError(f"{path}: the array '{name}' is missing") from None
    except Exception as error:  # as above
        raise UserError(f"{path}: the array '{name}' cannot be read ({one_line(error)})") from error


def check_rows(array: np.ndarray, num_nodes: int, origin: str) -> np.ndarray:
    """float32 [num_nodes, num_columns] of an array with a row of finite numbers for every node.

    Args:
        origin: names the array in an error.

    Raises:
        UserError: the array has another shape or type, or a value is NaN, infinite or too large for float32.
    """
    if array.dtype.kind not in "biuf":
        raise UserError(f"{origin}: expected numbers, found {array.dtype}")
    if array.ndim != 2 or len(array) != num_nodes or array.shape[1] == 0:
        raise UserError(f"{origin}: expected shape [{num_nodes}, columns], a row a node, found {list(array.shape)}")
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(array, dtype=np.float32)
    for start in range(0, num_nodes, CHECKED_ROWS):
        is_finite = np.isfinite(array[start : start + CHECKED_ROWS]).all(axis=1)
        if not is_finite.all():
            row = start + int(np.argmin(is_finite))
            raise UserError(f"{origin}: row {row} has a value that is NaN, infinite or too large for float32")
    return array
