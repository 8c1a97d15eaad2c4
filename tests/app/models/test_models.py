"""The models against dense matrices on the whole graph, and on batches at their limits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from glpilot.app.config.keys import ModelConfig
from glpilot.app.graph.sampler import NeighborSampler
from glpilot.app.models.build import build_model
from glpilot.app.models.gcn import propagate
from glpilot.app.models.gnn import loss_sum
from helpers.choices import MODELS
from helpers.topologies import StubTopology, random_topology

NAMES = MODELS
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")),
]
NUM_INPUTS, NUM_CLASSES = 5, 3


def make_model(name: str, num_layers: int = 2, dropout: float = 0.0, num_inputs: int = NUM_INPUTS):
    torch.manual_seed(0)
    config = ModelConfig(name=name, hidden=8, heads=2, layers=num_layers, dropout=dropout)
    model = build_model(config, num_inputs, NUM_CLASSES)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # so that no bias is zero
    return model


def run_model(model, topology, seeds, x, fanouts=None, device="cpu"):
    """Logits and inputs of a batch; `x` holds the inputs of all nodes."""
    batch = NeighborSampler(topology, fanouts or [-1] * len(model.layers)).sample(np.asarray(seeds, np.int64), (0,))
    inputs = torch.from_numpy(x[batch.input_nids]).float().to(device).requires_grad_()
    return model.to(device)([block.to(device) for block in batch.blocks], inputs), inputs


class DenseModel:
    """The layers of a model as products of dense matrices over the whole graph, in double precision."""

    def __init__(self, name: str, model, topology: StubTopology):
        self.name = name
        self.parameters = [{key: value.double() for key, value in layer.state_dict().items()} for layer in model.layers]
        self.adjacency = torch.from_numpy(topology.dense())

    def __call__(self, inputs: np.ndarray) -> torch.Tensor:
        x = torch.from_numpy(inputs).double()
        for index, parameters in enumerate(self.parameters):
            is_last = index == len(self.parameters) - 1
            x = getattr(self, f"_{self.name}")(parameters, x, is_last)
            if not is_last:
                x = F.elu(x) if self.name == "gat" else F.relu(x)
        return x

    def _sage(self, parameters, x, is_last):
        mean = self.adjacency @ x / self.adjacency.sum(1, keepdim=True).clamp(min=1)
        # DGL keeps one bias, with the weights of the node itself.
        bias = parameters.get("fc_self.bias", parameters.get("bias"))
        return x @ parameters["fc_self.weight"].T + mean @ parameters["fc_neigh.weight"].T + bias

    def _gcn(self, parameters, x, is_last):
        return dense_normalised(self.adjacency) @ x @ parameters["weight"].T + parameters["bias"]

    def _gat(self, parameters, x, is_last):
        num_heads, width = parameters["attn_l"].shape[1:]
        projected = (x @ parameters["fc.weight"].T).view(-1, num_heads, width)
        residual = x @ parameters["res_fc.weight"].T if "res_fc.weight" in parameters else x
        out = torch.empty_like(projected)
        for head in range(num_heads):
            of_source = projected[:, head] @ parameters["attn_l"][0, head]
            of_target = projected[:, head] @ parameters["attn_r"][0, head]
            scores = F.leaky_relu(of_target[:, None] + of_source[None, :], 0.2)
            attention = torch.softmax(scores.masked_fill(self.adjacency == 0, -torch.inf), 1).nan_to_num(0)
            out[:, head] = attention @ projected[:, head]
        # DGL leaves the bias to the residual where that has weights.
        bias = parameters.get("bias", parameters.get("res_fc.bias"))
        out = out + residual.view(-1, num_heads, width) + bias.view(1, num_heads, width)
        return out.mean(1) if is_last else out.flatten(1)


def dense_normalised(adjacency: torch.Tensor) -> torch.Tensor:
    """D^-1/2 (A + I) D^-1/2 with the in-degrees of A + I."""
    with_loops = adjacency + torch.eye(len(adjacency))
    scale = with_loops.sum(1).rsqrt()
    return scale[:, None] * with_loops * scale[None, :]


def random_inputs(topology: StubTopology, width: int = NUM_INPUTS) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((topology.num_nodes, width))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("is_directed", [False, True])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_full_neighbourhoods_give_the_dense_model(name, num_layers, is_directed, device):
    topology = random_topology(30, 80, is_directed=is_directed)
    x = random_inputs(topology)
    model = make_model(name, num_layers)
    expected = DenseModel(name, model, topology)(x)
    seeds = [29, 4, 11, 0, 28, 7]
    logits, _ = run_model(model, topology, seeds, x, device=device)
    np.testing.assert_allclose(logits.detach().cpu(), expected[seeds], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_layers_one_by_one_are_the_model(name):
    topology = random_topology(30, 80)
    x = torch.from_numpy(random_inputs(topology)).float()
    model = make_model(name, 3).eval()
    sampler = NeighborSampler(topology, [-1])
    hidden = x
    for index, width in enumerate(model.widths):
        batch = sampler.sample(np.arange(30), (0,))
        hidden = model.layer(index, batch.blocks[0], hidden[batch.input_nids])
        assert hidden.shape == (30, width)
    logits, _ = run_model(model, topology, np.arange(30), x.numpy())
    torch.testing.assert_close(hidden, logits, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_directed", [False, True])
def test_propagate_is_the_normalised_adjacency(is_directed):
    topology = random_topology(30, 80, is_directed=is_directed)
    x = torch.from_numpy(random_inputs(topology)).float()
    batch = NeighborSampler(topology, [-1]).sample(np.arange(30), (0,))
    expected = dense_normalised(torch.from_numpy(topology.dense())) @ x.double()
    actual = propagate(batch.blocks[0], x[batch.input_nids])
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    assert set(batch.blocks[0].srcdata) == {"_ID", "degree"}  # nothing is left in the block


def test_sampled_neighbours_stand_for_all_of_them():
    # Source 0's eight neighbours carry the same vector, so any sample of them has the sum of all.
    topology = StubTopology(9, [(0, other) for other in range(1, 9)])
    x = torch.tensor([[3.0]] + [[1.0]] * 8)
    outputs = []
    for fanout in (-1, 5, 1):
        batch = NeighborSampler(topology, [fanout]).sample(np.array([0]), (0,))
        outputs.append(propagate(batch.blocks[0], x[batch.input_nids]))
    expected = 3 / 9 + 8 / (9 * 2) ** 0.5
    np.testing.assert_allclose(torch.cat(outputs).flatten(), [expected] * 3, rtol=1e-6)


def test_samples_have_the_expectation_of_the_full_graph():
    topology = StubTopology(5, [(0, other) for other in range(1, 5)])
    x = torch.tensor([[0.0], [1.0], [2.0], [3.0], [6.0]])
    sampler = NeighborSampler(topology, [2])
    batches = [sampler.sample(np.array([0]), (key,)) for key in range(600)]
    mean = np.mean([propagate(batch.blocks[0], x[batch.input_nids]).item() for batch in batches])
    assert abs(mean - 12 / 10**0.5) < 0.3  # five standard deviations


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("labels_shape", [(0,), (0, NUM_CLASSES)])
@pytest.mark.parametrize("name", NAMES)
def test_a_batch_without_seeds_has_gradients_of_zeros(name, labels_shape, device):
    model = make_model(name, dropout=0.5)
    topology = random_topology(10, 20)
    logits, inputs = run_model(model, topology, [], random_inputs(topology), fanouts=[2, 2], device=device)
    assert logits.shape == (0, NUM_CLASSES)
    labels = torch.empty(labels_shape, dtype=torch.int64 if len(labels_shape) == 1 else torch.float32, device=device)
    loss = loss_sum(logits, labels)
    assert loss.item() == 0
    loss.backward()
    assert inputs.grad.shape == (0, NUM_INPUTS)
    for parameter in model.parameters():
        assert parameter.grad is None or not parameter.grad.any()


@pytest.mark.parametrize("name", NAMES)
def test_an_isolated_seed_has_an_output_and_gradients(name):
    model = make_model(name)
    topology = random_topology(10, 20)
    logits, inputs = run_model(model, topology, [9], random_inputs(topology))
    loss_sum(logits, torch.tensor([1])).backward()
    assert logits.isfinite().all() and inputs.grad.isfinite().all() and inputs.grad.any()


@pytest.mark.parametrize("name", NAMES)
def test_an_output_does_not_depend_on_the_other_seeds(name):
    model = make_model(name, dropout=0.5).eval()
    topology = random_topology(30, 80)
    x = random_inputs(topology)
    together, _ = run_model(model, topology, np.arange(30), x)
    for seed in (0, 13, 29):
        alone, _ = run_model(model, topology, [seed], x)
        torch.testing.assert_close(alone[0], together[seed], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_a_gradient_reaches_every_parameter_and_input(name):
    model = make_model(name)
    topology = random_topology(30, 80)
    logits, inputs = run_model(model, topology, np.arange(28), random_inputs(topology))
    loss_sum(logits, torch.arange(28) % NUM_CLASSES).backward()
    assert (inputs.grad != 0).any(1).all()
    assert all(parameter.grad.any() for parameter in model.parameters())


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_dropout_is_on_the_inputs_and_on_hidden_layers(name, num_layers):
    model = make_model(name, num_layers, dropout=0.5)
    topology = random_topology(30, 80)
    x = random_inputs(topology)
    draws = [run_model(model, topology, [3], x) for _ in range(2)]
    assert not torch.equal(draws[0][0], draws[1][0])
    loss_sum(draws[0][0], torch.tensor([0])).backward()
    assert 0.2 < (draws[0][1].grad == 0).float().mean() < 0.95  # numbers that were dropped
    model.eval()
    assert torch.equal(run_model(model, topology, [3], x)[0], run_model(model, topology, [3], x)[0])


@pytest.mark.parametrize("name", NAMES)
def test_weights_follow_the_seed(name):
    config = ModelConfig(name=name, hidden=8, heads=2)
    weights = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        weights.append(torch.cat([value.flatten() for value in build_model(config, 4, 3).state_dict().values()]))
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("num_layers, widths", [(1, [NUM_CLASSES]), (3, [8, 8, NUM_CLASSES])])
def test_widths(name, num_layers, widths):
    assert make_model(name, num_layers).widths == widths


def test_loss_of_one_label_per_node():
    logits = torch.tensor([[1.0, 2.0, -1.0], [0.0, 0.0, 5.0]])
    probabilities = np.exp(logits.numpy()) / np.exp(logits.numpy()).sum(1, keepdims=True)
    expected = -np.log(probabilities[0, 1]) - np.log(probabilities[1, 0])
    assert loss_sum(logits, torch.tensor([1, 0])).item() == pytest.approx(expected, rel=1e-6)


def test_loss_of_several_labels_per_node():
    logits = torch.tensor([[1.0, 2.0, -1.0], [0.0, 0.0, 5.0]])
    truth = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    probabilities = 1 / (1 + np.exp(-logits.numpy()))
    of_entries = np.where(truth.numpy() == 1, -np.log(probabilities), -np.log(1 - probabilities))
    assert loss_sum(logits, truth).item() == pytest.approx(of_entries.mean(1).sum(), rel=1e-6)
