"""Classes numbered densely and in ascending order, by value if all are numbers, else as words."""

from __future__ import annotations

import numpy as np

from .marks import plain_label
from .numerals import is_integer, is_number


def number_texts(texts: np.ndarray, marks: tuple[str, ...]) -> tuple[np.ndarray, list[str], dict[str, int]]:
    """Number the labels of object [num_rows] of str.

    Args:
        marks: labels that mean that there is none, in lower case.

    Returns:
        int64 [num_rows] of classes, -1 for no label; the classes' names; mark → how often it stands there.
    """
    import pandas

    codes, distinct = pandas.factorize(texts)
    plain = [plain_label(text) for text in distinct]
    names = sorted({name for name in plain if name.lower() not in marks}, key=_order(plain, marks))
    class_of_name = {name: number for number, name in enumerate(names)}
    counts = np.bincount(codes, minlength=len(distinct))
    marked: dict[str, int] = {}
    for name, count in zip(plain, counts.tolist()):
        if name.lower() in marks:
            marked[name.lower()] = marked.get(name.lower(), 0) + count
    return np.array([class_of_name.get(name, -1) for name in plain], dtype=np.int64)[codes], names, marked


def number_values(values: np.ndarray, marks: tuple[str, ...]) -> tuple[np.ndarray, list[str], dict[str, int]]:
    """The same for whole numbers [num_nodes], of floats too; NaN is none."""
    import pandas

    codes, distinct = pandas.factorize(values)  # a NaN has the code -1
    names = [str(int(value)) for value in distinct]
    is_class = np.array([name not in marks for name in names], dtype=bool)
    order = np.argsort(distinct)
    order = order[is_class[order]]
    class_of_code = np.full(len(names) + 1, -1, dtype=np.int64)  # the last is for NaN
    class_of_code[order] = np.arange(len(order))
    counts = np.bincount(codes + 1, minlength=len(names) + 1)
    marked = {name: int(counts[code + 1]) for code, name in enumerate(names) if not is_class[code]}
    if counts[0]:
        marked["nan"] = int(counts[0])
    return class_of_code[codes], [names[code] for code in order], marked


def _order(plain: list[str], marks: tuple[str, ...]):
    names = [name for name in plain if name.lower() not in marks]
    if all(map(is_integer, names)):
        return int
    if all(is_number(name) and "," not in name and name[-1].isdigit() for name in names):
        return lambda name: (float(name), name)
    return str
