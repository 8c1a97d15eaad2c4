import numpy as np
import pytest

from glpilot.data.importers.classes import number_texts, number_values
from glpilot.data.importers.marks import DEFAULT_MARKS, parse_marks


@pytest.mark.parametrize(
    "texts, codes, names, marked",
    [
        (["b", "a", "b"], [1, 0, 1], ["a", "b"], {}),
        (["10", "9", "-2"], [2, 1, 0], ["-2", "9", "10"], {}),
        (["1", "1.0", "+01", "1.000e+00"], [0, 0, 0, 0], ["1"], {}),
        (["0.50", "0.5", "10.5", "2"], [0, 0, 2, 1], ["0.5", "2", "10.5"], {}),
        (["a", "NaN", "", "-1", "-1.0", "NULL"], [0, -1, -1, -1, -1, -1], ["a"], {"nan": 1, "": 1, "-1": 2, "null": 1}),
        (["1", "a", "10", "9"], [0, 3, 1, 2], ["1", "10", "9", "a"], {}),
        (["nan", "-1"], [-1, -1], [], {"nan": 1, "-1": 1}),
    ],
)
def test_texts(texts, codes, names, marked):
    found = number_texts(np.array(texts, dtype=object), DEFAULT_MARKS)
    assert (found[0].tolist(), *found[1:]) == (codes, names, marked)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_values(dtype):
    codes, names, marked = number_values(np.array([7, -1, 3, 7, -5], dtype=dtype), DEFAULT_MARKS)
    assert (codes.tolist(), names, marked) == ([2, -1, 1, 2, 0], ["-5", "3", "7"], {"-1": 1})


def test_not_a_number_is_no_class():
    codes, names, marked = number_values(np.array([np.nan, 2.0]), DEFAULT_MARKS)
    assert (codes.tolist(), names, marked) == ([-1, 0], ["2"], {"nan": 1})


def test_marks():
    assert parse_marks("-1.0, NaN,?") == ("-1", "nan", "?")
    assert parse_marks("") == ("",)
