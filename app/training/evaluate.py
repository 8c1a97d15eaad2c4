"""How good the model is on a split: accuracy, and F1 where nodes have several labels."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from mpi4py import MPI

from glpilot.app.config.keys import Config
from glpilot.app.embedding.rows.plan import plan_access
from glpilot.app.graph.dataset import Dataset
from glpilot.app.graph.sampler import NeighborSampler
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.training.inference import infer
from glpilot.app.training.state import LearnableState

EVALUATION_KEY = 2**31 - 1  # keeps the samples of an evaluation apart from those of any epoch


def evaluate(
    communicator: Communicator, config: Config, dataset: Dataset, state: LearnableState, splits: Iterable[str]
) -> dict[str, float]:
    """Collective: metrics such as "val_accuracy" for the splits "val" and "test", over all ranks' nodes.

    With several labels per node, accuracy asks that all labels of a node are right, and "val_micro_f1" and
    "val_macro_f1" stand beside it. A split without nodes has no metrics.
    """
    masks = {"val": dataset.nodes.val_mask, "test": dataset.nodes.test_mask}
    splits = list(splits)
    wanted = np.logical_or.reduce([masks[split] for split in splits])
    if config.train.eval_fanouts == "full":
        logits = infer(communicator, dataset, state.model, state.inputs, wanted, config.embedding.fetch)
    else:
        logits = infer_sampled(communicator, config, dataset, state, wanted)
    metrics = {}
    for split in splits:
        scores = score(
            logits[masks[split][wanted]], dataset.nodes.labels[masks[split]], config.train.multilabel_decision
        )
        communicator.world.Allreduce(MPI.IN_PLACE, scores)
        metrics.update({f"{split}_{name}": value for name, value in metrics_of(scores).items()})
    return metrics


@torch.no_grad()
def infer_sampled(
    communicator: Communicator, config: Config, dataset: Dataset, state: LearnableState, wanted: np.ndarray
) -> np.ndarray:
    """Collective: logits [number wanted, num_classes] of this rank's nodes on neighbourhoods sampled as in training."""
    state.model.eval()
    nids = dataset.nids_of(wanted)
    batch_size = config.sampler.batch_size
    logits = np.empty((len(nids), dataset.book.num_classes), np.float32)
    sampler = NeighborSampler(dataset.topology, config.sampler.fanouts, state.model.needs_degrees)
    num_batches = communicator.world.allreduce(-(-len(nids) // batch_size), op=MPI.MAX)
    for index in range(num_batches):
        rows = slice(index * batch_size, (index + 1) * batch_size)
        batch = sampler.sample(nids[rows], (config.train.seed, EVALUATION_KEY, index, communicator.rank))
        x = state.inputs.read(plan_access(batch.input_nids, dataset.offsets)).to(state.device)
        blocks = [block.to(state.device) for block in batch.blocks]
        logits[rows] = state.model(blocks, x).cpu().numpy()
    state.model.train()
    return logits


def score(logits: np.ndarray, labels: np.ndarray, multilabel_decision: str) -> np.ndarray:
    """Counts that add up over ranks, int64.

    Returns:
        [right nodes, nodes]; with several labels per node followed by true positives, false positives and false
        negatives of each class.
    """
    if labels.ndim == 1:
        return np.array([(logits.argmax(axis=1) == labels).sum(), len(labels)], np.int64)
    truth = labels.astype(bool)
    predicted = top_k(logits, truth.sum(axis=1)) if multilabel_decision == "known_count" else logits > 0
    right = (predicted == truth).all(axis=1).sum()
    by_class = [(predicted & truth).sum(axis=0), (predicted & ~truth).sum(axis=0), (~predicted & truth).sum(axis=0)]
    return np.concatenate([[right, len(labels)], *by_class]).astype(np.int64)


def top_k(logits: np.ndarray, num_labels: np.ndarray) -> np.ndarray:
    """Predict for each node its `num_labels` highest classes, bool like logits."""
    rank_of_class = np.argsort(np.argsort(-logits, axis=1, kind="stable"), axis=1, kind="stable")
    return rank_of_class < num_labels[:, None]


def metrics_of(scores: np.ndarray) -> dict[str, float]:
    """Metrics of summed `score` counts; none if the split is empty."""
    if scores[1] == 0:
        return {}
    metrics = {"accuracy": float(scores[0] / scores[1])}
    if len(scores) > 2:
        true_positives, false_positives, false_negatives = scores[2:].reshape(3, -1)
        support = 2 * true_positives + false_positives + false_negatives
        metrics["micro_f1"] = float(2 * true_positives.sum() / max(1, support.sum()))
        metrics["macro_f1"] = float(np.mean(2 * true_positives / np.maximum(1, support)))
    return metrics
