import pytest

from glpilot.data.importers.numerals import is_integer, is_number, whole_float


@pytest.mark.parametrize("text", ["0", "-7", "+7", "007", "9" * 4000])
def test_integers(text):
    assert is_integer(text) and is_number(text) and whole_float(text) is None


@pytest.mark.parametrize("text", ["", "1.0", "1e3", " 1", "1_0", "\uff11", "1\u00a0", "0x1", "9" * 4001])
def test_what_is_no_integer(text):
    assert not is_integer(text)


@pytest.mark.parametrize(
    "text, value",
    [
        ("1.0", 1),
        ("-12.000", -12),
        ("9007199254740991.0", 2**53 - 1),
        ("1.000000000000000000e+00", 1),
        ("-1.234000000000000000e+03", -1234),
        ("1.234e+03", 1234),
        ("0.000e+00", 0),
    ],
)
def test_whole_floats(text, value):
    assert whole_float(text) == value


@pytest.mark.parametrize(
    "text", ["1", "1.", "1.5", "1e3", "1e+00", "1.23e+03", "1.5e+00", "1.0e-01", "9007199254740992.0", "nan", "1,0", ""]
)
def test_what_is_no_whole_float(text):
    assert whole_float(text) is None


@pytest.mark.parametrize("text", ["1,5", "1.5e-3", ".5", "nan", "-inf"])
def test_numbers_of_other_kinds(text):
    assert is_number(text) and not is_integer(text)


@pytest.mark.parametrize("text", ["", "a", "1a", "1.2.3", "NA", "-"])
def test_what_is_no_number(text):
    assert not is_number(text)
