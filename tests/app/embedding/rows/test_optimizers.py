"""Sparse optimizers: the kernels, the torch ops and references written apart from both give the same numbers."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glpilot.app.config.keys import Config
from glpilot.app.embedding.rows.optimizers.sparse_optimizer import RULES, SparseOptimizer, step_with_torch
from glpilot.app.embedding.rows.records import allocate_records, counts_of, rows_of
from glpilot.app.embedding.rows.segment import DeviceSegment, Segment

NAMES = list(RULES)
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")),
]
LR = 0.01
# Row number, width of the rows, rows touched in each step.
SHAPES = [
    (1, 1, [1, 1]),
    (6, 1, [6, 2, 3]),
    (5, 3, [2, 0, 5, 1]),
    (40, 64, [10, 40, 7]),
    (3, 2, [0, 0]),
    (0, 4, [0, 0]),
]


class Table:
    """Records and optimizer state on a device, updated by an optimizer under test."""

    def __init__(self, name: str, rows: np.ndarray, device: str = "cpu", counts=0):
        records = allocate_records(*rows.shape)
        rows_of(records)[...] = rows
        counts_of(records)[...] = counts
        self.name = name
        self.optimizer = SparseOptimizer(name, rows.shape[1])
        self.device = device
        self.records = torch.from_numpy(records).to(device)
        self.state = torch.from_numpy(self.optimizer.allocate_state(len(rows))).to(device)

    def _on_device(self, row_ids, grads):
        row_ids, grads = torch.from_numpy(row_ids.astype(np.int32)), torch.from_numpy(grads.astype(np.float32))
        return self.records, self.state, row_ids.to(self.device), grads.to(self.device)

    def step(self, row_ids, grads, lr=LR):
        records, state, row_ids, grads = self._on_device(row_ids, grads)
        positions = torch.arange(len(row_ids)).flip(0).to(row_ids.device)  # where the gradients lie, in any order
        segment = DeviceSegment(row_ids, positions, grads.flip(0))
        if records.device.type == "cpu":
            segment = Segment(*(tensor.numpy() for tensor in segment))
        self.optimizer.step(records, state, segment, lr)

    def step_with_torch(self, row_ids, grads, lr=LR):
        step_with_torch(self.name, *self._on_device(row_ids, grads), lr=lr)

    @property
    def rows(self) -> np.ndarray:
        return rows_of(self.records.cpu().numpy())

    @property
    def counts(self) -> np.ndarray:
        return counts_of(self.records.cpu().numpy())


def random_rows(rng, num_rows: int, dim: int) -> np.ndarray:
    return rng.uniform(-0.05, 0.05, (num_rows, dim)).astype(np.float32)


def random_steps(rng, num_rows: int, dim: int, touched):
    """(row_ids, grads) of each step: distinct rows in any order, gradients of very different sizes."""
    for num_touched in touched:
        size = 10.0 ** rng.integers(-4, 2, (num_touched, 1))
        yield rng.permutation(num_rows)[:num_touched], size * rng.standard_normal((num_touched, dim))


def assert_same(actual: np.ndarray, expected: np.ndarray):
    """Equal within 1e-6, of the number or of the learning rate, whichever is more."""
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6 * LR)


class Reference:
    """The published formulas in double precision, one row and one number at a time."""

    def __init__(self, name: str, rows: np.ndarray):
        self.name = name
        self.rows = rows.astype(np.float64).tolist()
        self.state = [[[0.0, 0.0] for _ in row] for row in self.rows]
        self.counts = [0] * len(self.rows)

    def step(self, row_ids, grads, lr=LR):
        for row_id, grad in zip(row_ids.tolist(), grads.astype(np.float32).astype(np.float64).tolist()):
            self.counts[row_id] += 1
            getattr(self, f"_{self.name}")(self.rows[row_id], self.state[row_id], grad, lr, self.counts[row_id])

    def _sgd(self, row, state, grad, lr, count):
        for d, g in enumerate(grad):
            row[d] -= lr * g

    def _adagrad(self, row, state, grad, lr, count):
        for d, g in enumerate(grad):
            state[d][0] += g**2
            row[d] -= lr * g / (state[d][0] ** 0.5 + 1e-10)

    def _rowwise_adagrad(self, row, state, grad, lr, count):
        state[0][0] += sum(g**2 for g in grad) / len(grad)
        for d, g in enumerate(grad):
            row[d] -= lr * g / (state[0][0] ** 0.5 + 1e-10)

    def _adam(self, row, state, grad, lr, count):
        for d, g in enumerate(grad):
            state[d][0] = 0.9 * state[d][0] + 0.1 * g
            state[d][1] = 0.999 * state[d][1] + 0.001 * g**2
            mean, square = state[d][0] / (1 - 0.9**count), state[d][1] / (1 - 0.999**count)
            row[d] -= lr * mean / (square**0.5 + 1e-8)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("num_rows, dim, touched", SHAPES)
def test_published_formulas(name, num_rows, dim, touched, device):
    rng = np.random.default_rng(dim)
    rows = random_rows(rng, num_rows, dim)
    table, reference = Table(name, rows, device), Reference(name, rows)
    for row_ids, grads in random_steps(rng, num_rows, dim, touched):
        table.step(row_ids, grads)
        reference.step(row_ids, grads)
    assert table.counts.tolist() == reference.counts
    np.testing.assert_allclose(table.rows, np.reshape(reference.rows, rows.shape), rtol=1e-6, atol=1e-6 * LR * 5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("num_rows, dim, touched", SHAPES)
def test_kernels_and_torch_ops_agree(name, num_rows, dim, touched, device):
    rng = np.random.default_rng(dim)
    rows = random_rows(rng, num_rows, dim)
    by_kernel, by_torch = Table(name, rows), Table(name, rows, device)
    for row_ids, grads in random_steps(rng, num_rows, dim, touched):
        by_kernel.step(row_ids, grads)
        by_torch.step_with_torch(row_ids, grads)
        assert_same(by_torch.rows, by_kernel.rows)
        np.testing.assert_allclose(by_torch.state.cpu(), by_kernel.state, rtol=1e-6, atol=0)
        assert by_torch.counts.tolist() == by_kernel.counts.tolist()


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(NAMES),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(0, 2**32 - 1),
    st.lists(st.floats(0, 1), min_size=1, max_size=6),
    st.integers(0, 10**6),
)
def test_kernels_and_torch_ops_agree_on_any_shape(name, num_rows, dim, seed, shares, count):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, num_rows, dim)
    by_kernel, by_torch = Table(name, rows, counts=count), Table(name, rows, counts=count)
    for row_ids, grads in random_steps(rng, num_rows, dim, [round(share * num_rows) for share in shares]):
        by_kernel.step(row_ids, grads)
        by_torch.step_with_torch(row_ids, grads)
    assert_same(by_torch.rows, by_kernel.rows)
    assert by_torch.counts.tolist() == by_kernel.counts.tolist()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "name, kind",
    [
        ("sgd", torch.optim.SGD),
        ("adagrad", torch.optim.Adagrad),
        ("adam", torch.optim.Adam),
    ],
)
@pytest.mark.parametrize("num_rows, dim", [(4, 1), (5, 3), (20, 64)])
def test_torch_where_all_rows_are_touched(name, kind, num_rows, dim, device):
    rng = np.random.default_rng(dim)
    rows = random_rows(rng, num_rows, dim)
    table = Table(name, rows, device)
    weight = torch.nn.Parameter(torch.from_numpy(rows.copy()))
    optimizer = kind([weight], lr=LR)
    for row_ids, grads in random_steps(rng, num_rows, dim, [num_rows] * 5):
        table.step(row_ids, grads)
        weight.grad = torch.empty_like(weight)
        weight.grad[row_ids] = torch.from_numpy(grads).float()
        optimizer.step()
        np.testing.assert_allclose(table.rows, weight.detach(), rtol=1e-6, atol=1e-6 * LR * 5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [0, 1, 10, 10_000, 2**30])
def test_adam_corrects_its_bias_by_the_rows_own_count(count, device):
    table = Table("adam", np.zeros((2, 3), np.float32), device, counts=[count, 0])
    table.step(np.array([0, 1]), np.ones((2, 3)))
    number = count + 1
    step_size = LR * 0.1 / (1 - 0.9**number) / ((0.001 / (1 - 0.999**number)) ** 0.5 + 1e-8)
    np.testing.assert_allclose(table.rows, [[-step_size] * 3, [-LR] * 3], rtol=2e-6)
    assert table.counts.tolist() == [number, 1]


@pytest.mark.parametrize("with_torch", [False, True])
@pytest.mark.parametrize("name, eps", [("adagrad", 1e-10), ("rowwise_adagrad", 1e-10), ("adam", 1e-8)])
def test_a_gradient_as_small_as_epsilon_moves_half_a_step(name, eps, with_torch):
    table = Table(name, np.zeros((1, 2), np.float32))
    (table.step_with_torch if with_torch else table.step)(np.array([0]), np.full((1, 2), eps))
    np.testing.assert_allclose(table.rows, -LR / 2, rtol=1e-5)


@pytest.mark.parametrize("with_torch", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_rows_without_a_gradient_stay(name, with_torch):
    rng = np.random.default_rng(0)
    table = Table(name, random_rows(rng, 6, 3), counts=[0, 1, 2, 2**31 - 1, 4, 5])
    table.state.copy_(torch.from_numpy(rng.uniform(1, 2, table.state.shape)))
    records, state = table.records.clone(), table.state.clone()
    touched, others = np.array([4, 1]), np.array([0, 2, 3, 5])
    (table.step_with_torch if with_torch else table.step)(touched, rng.standard_normal((2, 3)))
    assert table.records[others].numpy().tobytes() == records[others].numpy().tobytes()
    assert torch.equal(table.state[others], state[others])
    assert (table.rows[touched] != rows_of(records.numpy())[touched]).all()
    assert table.counts.tolist() == [0, 2, 2, 2**31 - 1, 5, 5]


@pytest.mark.parametrize("with_torch", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_zero_gradient_counts_but_does_not_move(name, with_torch):
    rows = random_rows(np.random.default_rng(0), 2, 3)
    table = Table(name, rows)
    (table.step_with_torch if with_torch else table.step)(np.array([1]), np.zeros((1, 3)))
    assert (table.rows == rows).all() and table.counts.tolist() == [0, 1]


@pytest.mark.parametrize("name", NAMES)
def test_state_can_be_split_with_the_columns_of_rows(name):
    """It is as wide as a row, or a multiple, or one number that runs over all columns."""
    rule = RULES[name]
    assert rule.state_width(12) % 12 == 0 or (rule.state_width(12) == 1 and rule.step_sizes is not None)


@pytest.mark.parametrize("name, width", [("sgd", 0), ("adagrad", 7), ("rowwise_adagrad", 1), ("adam", 14)])
def test_state_has_a_line_per_row(name, width):
    optimizer = SparseOptimizer(name, 7)
    state = optimizer.allocate_state(5)
    assert optimizer.state_width == width and state.shape == (5, width)
    assert state.dtype == np.float32 and not state.any()


def test_the_learning_rate_of_each_step_counts():
    table = Table("sgd", np.zeros((1, 1), np.float32))
    for lr in (0.5, 0.25):
        table.step(np.array([0]), np.ones((1, 1)), lr)
    assert table.rows.tolist() == [[-0.75]]


def test_the_table_names_what_the_config_offers():
    embedding = Config.model_fields["embedding"].annotation
    assert set(RULES) == set(get_args(embedding.model_fields["optimizer"].annotation))
