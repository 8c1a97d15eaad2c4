"""Which labelled nodes train the model, which choose it, and which test it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .errors import UserError


@dataclass(frozen=True)
class Split:
    """train_mask, val_mask, test_mask: bool [num_nodes]; a node is in one of them at most."""

    train_mask: np.ndarray
    val_mask: np.ndarray
    test_mask: np.ndarray

    def restricted_to(self, nodes: np.ndarray) -> Split:
        """The same without the nodes that the bool array [num_nodes] leaves out."""
        return Split(self.train_mask & nodes, self.val_mask & nodes, self.test_mask & nodes)

    @property
    def num_assigned(self) -> int:
        return sum(int(np.count_nonzero(mask)) for mask in (self.train_mask, self.val_mask, self.test_mask))


def labelled_nodes(labels: np.ndarray) -> np.ndarray:
    """bool [num_nodes]: which nodes have a label, from labels as in `NodeData`."""
    return labels.any(axis=1) if labels.ndim == 2 else labels >= 0


def parse_fractions(text: str) -> tuple[float, float, float]:
    """Read "0.6,0.2,0.2": the fractions of train, validation and test.

    Raises:
        UserError: not three numbers, or one is negative, or they sum to more than 1.
    """
    wish = "expected three fractions for train, validation and test, such as 0.6,0.2,0.2"
    try:
        fractions = tuple(float(field) for field in text.split(","))
    except ValueError:
        raise UserError(f"--split {text!r}: {wish}") from None
    if len(fractions) != 3 or not np.isfinite(fractions).all():
        raise UserError(f"--split {text!r}: {wish}")
    if min(fractions) < 0:
        raise UserError(f"--split {text!r}: a fraction is negative; {wish}")
    if sum(fractions) > 1 + 1e-9:
        raise UserError(f"--split {text!r}: the fractions sum to {sum(fractions):.6g}, more than 1; {wish}")
    return fractions


def random_split(labelled: np.ndarray, fractions: tuple[float, float, float], seed: int) -> Split:
    """Deal the labelled nodes out at random; what the fractions leave over is in no split.

    Args:
        labelled: bool [num_nodes].
        fractions: of train, validation and test; their sum is 1 at most.
    """
    nodes = np.random.default_rng(seed).permutation(np.flatnonzero(labelled))
    # Rounding the bounds, not the sizes, keeps the sum right.
    bounds = np.minimum(np.rint(np.cumsum(fractions) * len(nodes)).astype(np.int64), len(nodes))
    masks = []
    for start, stop in zip((0, *bounds[:-1]), bounds):
        mask = np.zeros(len(labelled), dtype=bool)
        mask[nodes[start:stop]] = True
        masks.append(mask)
    return Split(*masks)


def empty_split(num_nodes: int) -> Split:
    """No node in any split."""
    return Split(*(np.zeros(num_nodes, dtype=bool) for _ in range(3)))
