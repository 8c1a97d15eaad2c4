import pytest

from glpilot.data.importers.columns import (
    EDGE_ROLES,
    LABEL,
    NODE,
    PAIRS,
    SPLIT,
    ColumnError,
    find_columns,
    number_columns,
)


@pytest.mark.parametrize("source, target", PAIRS)
def test_every_known_pair_is_found_wherever_it_stands(source, target):
    assert find_columns(["", f" {target.upper()}", "x", source], EDGE_ROLES, {}) == [3, 1]


@pytest.mark.parametrize(
    "header, chosen, expected",
    [
        (["src", "target"], {}, [0, 1]),  # of two pairs, but neither can mean anything else
        (["a", "b"], {}, [None, None]),
        (["", ""], {}, [None, None]),
        (["src", "b"], {}, [0, None]),
        (["A", "a", "dst"], {"source": "a"}, [1, 2]),  # spelled exactly
        (["A", "b", "dst"], {"source": " a "}, [0, 2]),
        (["src", "dst", "from"], {"source": "src"}, [0, 1]),
        (["v", "x"], {"source": "x"}, [1, 0]),
    ],
)
def test_ends_of_edges(header, chosen, expected):
    assert find_columns(header, EDGE_ROLES, chosen) == expected


@pytest.mark.parametrize(
    "header, chosen",
    [
        (["src", "dst", "from"], {}),
        (["src", "dst", "DST "], {}),
        (["from", "dst"], {}),
        (["u", "target"], {}),
        (["a", "a", "b"], {"source": "a", "target": "b"}),
        (["Ab", "aB", "c"], {"source": "AB", "target": "c"}),
        (["src", "dst"], {"source": "dst"}),
    ],
)
def test_what_is_not_clear_is_refused(header, chosen):
    with pytest.raises(ColumnError):
        find_columns(header, EDGE_ROLES, chosen)


def test_nodes_labels_and_splits():
    assert find_columns(["split", "y", "Node_ID"], (NODE, LABEL), {}) == [2, 1]
    assert find_columns(["split", "nid"], (NODE, SPLIT), {}) == [1, 0]
    with pytest.raises(ColumnError, match="could each be the node"):
        find_columns(["id", "node"], (NODE,), {})


def test_columns_by_number():
    assert number_columns(2, EDGE_ROLES, {}) == [0, 1]
    assert number_columns(3, EDGE_ROLES, {}) is None
    assert number_columns(3, EDGE_ROLES, {"source": "3"}) is None
    assert number_columns(2, EDGE_ROLES, {"target": "1"}) == [1, 0]
    assert number_columns(3, EDGE_ROLES, {"source": "3", "target": "1"}) == [2, 0]
    for wrong in ({"source": "0"}, {"source": "4"}, {"source": "x"}, {"source": "1", "target": "1"}):
        with pytest.raises(ColumnError):
            number_columns(3, EDGE_ROLES, wrong)
