"""How often rows are used: counted, calculated from the structure, and ordered."""

from __future__ import annotations

import numpy as np
import pytest

from glpilot.app.embedding.copies.hotness import (
    AccessCounter,
    hottest,
    inclusion_probabilities,
    log_absences,
    share_curve,
)
from glpilot.app.graph.sampler import NeighborSampler
from helpers.topologies import random_topology


def test_rates_of_what_was_counted():
    counter = AccessCounter(3)
    for nids in ([0, 1], [0], [0]):
        counter.add(np.array(nids))
    assert counter.counts.tolist() == [3, 1, 0] and counter.num_steps == 3
    assert counter.rates() == pytest.approx([3.5 / 4, 1.5 / 4, 0.5 / 4])
    counter.clear()
    assert counter.counts.sum() == 0 and counter.num_steps == 0


def test_a_chain_by_hand():
    """0 → 1 → 2, as in-edges; node 2 is a seed in half of the steps."""
    indptr, indices = np.array([0, 0, 1, 2]), np.array([0, 1])
    rates = inclusion_probabilities(indptr, indices, np.array([0, 0, 0.5], np.float32), [1, 1])
    assert rates == pytest.approx([0.5, 0.5, 0.5], rel=1e-4)
    rates = inclusion_probabilities(indptr, indices, np.array([0, 0, 0.5], np.float32), [1])
    assert rates == pytest.approx([0, 0.5, 0.5], rel=1e-4)


def test_a_node_with_more_neighbours_than_the_fanout():
    """Four in-neighbours, of which a step takes one."""
    indptr, indices = np.array([0, 0, 0, 0, 0, 4]), np.arange(4)
    seeds = np.array([0, 0, 0, 0, 1], np.float32)
    assert inclusion_probabilities(indptr, indices, seeds, [1])[:4] == pytest.approx([0.25] * 4, rel=1e-4)
    assert inclusion_probabilities(indptr, indices, seeds, [-1])[:4] == pytest.approx([1] * 4, rel=1e-4)


def test_calculated_rates_are_those_of_samples():
    """The calculation takes choices as independent, so it is near what sampling counts, not equal to it."""
    topology = random_topology(300, 1500)
    fanouts, num_seeds, num_steps = [4, 3], 10, 600
    sampler = NeighborSampler(topology, fanouts)
    counter, rng = AccessCounter(300), np.random.default_rng(1)
    for step in range(num_steps):
        counter.add(sampler.sample(rng.choice(300, num_seeds, replace=False), (1, step)).input_nids)
    seeds = np.full(300, num_seeds / 300, np.float32)
    calculated = inclusion_probabilities(topology.indptr, topology.indices, seeds, fanouts)
    counted = counter.counts / num_steps
    assert np.corrcoef(calculated, counted)[0, 1] > 0.95
    assert calculated.sum() == pytest.approx(counted.sum(), rel=0.1)


def test_the_hottest_rows_and_how_ties_go():
    rates = np.array([0.1, 0.5, 0.5, 0.9, 0.5], np.float32)
    assert hottest(rates, 0).tolist() == []
    assert hottest(rates, 3).tolist() == [1, 2, 3]
    assert hottest(rates, 9).tolist() == [0, 1, 2, 3, 4]


def test_how_often_a_row_is_read_by_none():
    assert np.exp(log_absences(np.array([0, 0.25], np.float32))) == pytest.approx([1, 0.75])
    assert np.isfinite(log_absences(np.array([1], np.float32))).all()


def test_the_share_of_the_most_frequent_rows():
    amounts, rates = np.array([5, 1, 0, 2]), np.array([0.1, 0.9, 0.5, 0.2])
    assert share_curve(amounts, rates, num_points=5) == pytest.approx([0, 1 / 8, 1 / 8, 3 / 8, 1])
    assert share_curve(np.zeros(4), rates).tolist() == [0] * 101
