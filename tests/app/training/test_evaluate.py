"""Scores against loops over nodes and classes, whole and summed over ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glpilot.app.training.evaluate import metrics_of, score, top_k


@st.composite
def multilabel_cases(draw):
    """(logits, labels, decision) of several nodes and classes; some nodes or classes have no label."""
    num_nodes, num_classes = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    logits = rng.integers(-3, 4, (num_nodes, num_classes)).astype(np.float32)  # with ties and zeros
    labels = (rng.random((num_nodes, num_classes)) < draw(st.sampled_from([0.0, 0.3, 1.0]))).astype(np.uint8)
    return logits, labels, draw(st.sampled_from(["threshold", "known_count"]))


def predict_in_a_loop(logits, labels, decision: str) -> list[set[int]]:
    predicted = []
    for row, truth in zip(logits, labels):
        if decision == "threshold":
            predicted.append({c for c in range(len(row)) if 1 / (1 + np.exp(-row[c])) > 0.5})
        else:
            by_logit = sorted(range(len(row)), key=lambda c: (-row[c], c))
            predicted.append(set(by_logit[: int(truth.sum())]))
    return predicted


def metrics_in_a_loop(predicted, labels) -> dict[str, float]:
    truths = [set(np.flatnonzero(row).tolist()) for row in labels]
    f1, totals = [], np.zeros(3)
    for c in range(labels.shape[1]):
        hits = sum(c in p and c in t for p, t in zip(predicted, truths))
        false_alarms = sum(c in p and c not in t for p, t in zip(predicted, truths))
        misses = sum(c not in p and c in t for p, t in zip(predicted, truths))
        totals += hits, false_alarms, misses
        precision = hits / (hits + false_alarms) if hits + false_alarms else 0
        recall = hits / (hits + misses) if hits + misses else 0
        f1.append(2 * precision * recall / (precision + recall) if precision + recall else 0)
    hits, false_alarms, misses = totals
    denominator = 2 * hits + false_alarms + misses
    return {
        "accuracy": sum(p == t for p, t in zip(predicted, truths)) / len(truths),
        "micro_f1": 2 * hits / denominator if denominator else 0,
        "macro_f1": sum(f1) / len(f1),
    }


@settings(deadline=None)
@given(multilabel_cases())
def test_several_labels_per_node(case):
    logits, labels, decision = case
    expected = metrics_in_a_loop(predict_in_a_loop(logits, labels, decision), labels)
    assert metrics_of(score(logits, labels, decision)) == pytest.approx(expected)


@settings(deadline=None)
@given(multilabel_cases(), st.integers(0, 12))
def test_scores_of_ranks_add_up(case, cut):
    logits, labels, decision = case
    of_ranks = score(logits[:cut], labels[:cut], decision) + score(logits[cut:], labels[cut:], decision)
    assert of_ranks.tolist() == score(logits, labels, decision).tolist() and of_ranks.dtype == np.int64


@settings(deadline=None)
@given(st.integers(1, 20), st.integers(1, 5), st.integers(0, 2**32 - 1), st.sampled_from(["threshold", "known_count"]))
def test_one_label_per_node(num_nodes, num_classes, seed, decision):
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((num_nodes, num_classes)).astype(np.float32)
    labels = rng.integers(0, num_classes, num_nodes).astype(np.int32)
    right = sum(max(range(num_classes), key=lambda c: row[c]) == label for row, label in zip(logits, labels))
    scores = score(logits, labels, decision)
    assert scores.tolist() == [right, num_nodes] and scores.dtype == np.int64
    assert metrics_of(scores) == {"accuracy": right / num_nodes}


def test_known_values():
    labels = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0]], np.uint8)
    logits = np.array([[2, 1, -1], [-1, 3, -2], [-1, -2, -3]], np.float32)
    # By threshold, classes 0 and 1 each hit once, class 1 also falsely, and class 2 is missed once.
    assert score(logits, labels, "threshold").tolist() == [2, 3, 1, 1, 0, 0, 1, 0, 0, 0, 1]
    metrics = metrics_of(score(logits, labels, "threshold"))
    assert metrics == pytest.approx({"accuracy": 2 / 3, "micro_f1": 4 / 6, "macro_f1": (1 + 2 / 3 + 0) / 3})


@pytest.mark.parametrize("labels", [np.empty(0, np.int32), np.empty((0, 4), np.uint8)])
@pytest.mark.parametrize("decision", ["threshold", "known_count"])
def test_a_split_without_nodes_has_no_metrics(labels, decision):
    scores = score(np.empty((0, 4), np.float32), labels, decision)
    assert not scores.any() and len(scores) == (2 if labels.ndim == 1 else 14)
    assert metrics_of(scores) == {}


@pytest.mark.parametrize(
    "num_labels, expected",
    [
        ([0, 0], [[0, 0, 0], [0, 0, 0]]),
        ([1, 2], [[0, 1, 0], [1, 0, 1]]),
        ([2, 3], [[0, 1, 1], [1, 1, 1]]),
    ],
)
def test_top_k(num_labels, expected):
    logits = np.array([[-5.0, 2.0, -1.0], [0.5, -0.5, 0.5]], np.float32)
    predicted = top_k(logits, np.array(num_labels))
    assert predicted.dtype == bool and predicted.astype(int).tolist() == expected


def test_of_equal_logits_the_first_class_is_predicted():
    assert top_k(np.zeros((1, 4)), np.array([2])).tolist() == [[True, True, False, False]]
