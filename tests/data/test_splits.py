import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glpilot.data.errors import UserError
from glpilot.data.splits import parse_fractions, random_split

fractions = st.tuples(*[st.floats(0, 1)] * 3).filter(lambda values: sum(values) <= 1)


@given(st.lists(st.booleans(), max_size=60), fractions, st.integers(0, 5))
def test_sizes_and_members(labelled, wish, seed):
    labelled = np.array(labelled, dtype=bool)
    split = random_split(labelled, wish, seed)
    masks = [split.train_mask, split.val_mask, split.test_mask]
    assert np.sum(masks, axis=0).max(initial=0) <= 1
    assert not (np.any(masks, axis=0) & ~labelled).any()
    for mask, fraction in zip(masks, wish):
        assert abs(mask.sum() - fraction * labelled.sum()) <= 1


def test_fractions_that_sum_to_one_leave_nobody_out():
    for num_nodes in range(1, 40):
        labelled = np.ones(num_nodes, dtype=bool)
        for wish in ((0.6, 0.2, 0.2), (0.7, 0.2, 0.1), (1 / 3, 1 / 3, 1 / 3)):
            assert random_split(labelled, wish, seed=0).num_assigned == num_nodes


def test_seed_decides():
    labelled = np.ones(1000, dtype=bool)
    first, again, other = (random_split(labelled, (0.5, 0.2, 0.2), seed).train_mask for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).any()


@pytest.mark.parametrize(
    "text",
    [
        "0.6,0.2",
        "0.6,0.2,0.1,0.1",
        "a,b,c",
        "",
        "0.6,0.2,",
        "nan,0.1,0.1",
        "inf,0,0",
        "0.6,0.3,0.2",
        "1,0,1e-6",
        "-0.1,0.5,0.5",
    ],
)
def test_refuses_fractions(text):
    with pytest.raises(UserError, match="--split"):
        parse_fractions(text)


def test_parses_fractions():
    assert parse_fractions("0.6, 0.2,0.2") == (0.6, 0.2, 0.2)
    assert parse_fractions("0.1,0.2,0.7") == (0.1, 0.2, 0.7)
