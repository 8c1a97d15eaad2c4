import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glpilot.data.importers.fields import FieldError, are_padded, has_stray_quote, is_blank, split_fields


@pytest.mark.parametrize(
    "text, fields",
    [
        ("", [""]),
        ("a,b", ["a", "b"]),
        ("a,,", ["a", "", ""]),
        (' a , "b c" ', [" a ", "b c"]),
        ('"a,b","c ""d"" e",""', ["a,b", 'c "d" e', ""]),
        ('5" x,b"', ['5" x', 'b"']),
        ("a;b\tc", ["a;b\tc"]),
    ],
)
def test_fields(text, fields):
    assert split_fields(text, ",") == fields


@pytest.mark.parametrize(
    "text, column", [('a,"b', 3), ('"a"b,c', 4), ('"a" b,c', 4), ('"a""', 1), ('a\\"b', 2), ("a\\,b", 2)]
)
def test_what_is_no_field(text, column):
    with pytest.raises(FieldError) as error:
        split_fields(text, ",")
    assert error.value.column == column


@given(st.lists(st.text(st.characters(exclude_characters="\\\r\n\0", exclude_categories=["Cs"])), min_size=2))
def test_the_same_as_csv(fields):
    file = io.StringIO()
    csv.writer(file, lineterminator="").writerow(fields)
    assert split_fields(file.getvalue(), ",") == fields


def test_blanks_and_quotes():
    assert are_padded('a, "b", c', ",") and not are_padded('a,"b, c"', ",") and not are_padded("a", ",")
    assert has_stray_quote('a b "x, y"', ",") and not has_stray_quote('a, "b"', ",")
    assert is_blank(" \t", ",") and not is_blank(" \t", "\t")
