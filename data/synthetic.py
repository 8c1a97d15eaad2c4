"""Synthetic graphs with planted classes: a degree-corrected stochastic block model.

The model is that of Karrer and Newman, "Stochastic blockmodels and community structure in networks" (Physical
Review E 83, 2011): a node has a propensity, a block, and joins others in proportion to their propensities and to
the affinity of the two blocks. Blocks here are communities of a few hundred nodes, each within one class, so
that a partitioner finds the locality that real graphs have. Propensities follow Zipf's law.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .errors import UserError
from .graph import Graph, NodeData
from .splits import random_split
from .structure import simple_csc, sorted_unique

DEFAULT_COMMUNITY_SIZE = 400
CHUNK_EDGES = 1 << 22
MAX_ROUNDS = 100


@dataclass(frozen=True)
class BlockModel:
    """What `generate` draws from.

    Attributes:
        degree: the mean number of neighbours of a node.
        homophily: the share of edges within a class; it comes out somewhat lower where communities are dense, as an
            edge that exists already is drawn again.
        locality: the share of those that stay within a community.
        num_communities: in the whole graph; None makes one of every 400 nodes, and at least one a class.
        zipf_exponent: the propensity of the node of rank r is r ** -zipf_exponent; 0 makes all nodes alike.
    """

    num_nodes: int
    degree: float
    num_classes: int
    homophily: float = 0.8
    locality: float = 0.7
    num_communities: int | None = None
    zipf_exponent: float = 0.7

    def __post_init__(self) -> None:
        if self.num_nodes < 2:
            raise UserError(f"--nodes {self.num_nodes}: expected 2 or more")
        if not 1 <= self.num_classes <= self.num_nodes:
            raise UserError(f"--classes {self.num_classes}: expected 1 … {self.num_nodes}, the number of nodes")
        if not 0 < self.degree <= (self.num_nodes - 1) / 2:
            raise UserError(f"--degree {self.degree:g}: expected more than 0, and at most half of the other nodes")
        for name in ("homophily", "locality"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"--{name} {getattr(self, name):g}: expected a share in 0 … 1")
        if not 0 <= self.zipf_exponent <= 3:
            raise UserError(f"--zipf {self.zipf_exponent:g}: expected an exponent in 0 … 3")
        if self.num_communities is not None and not self.num_classes <= self.num_communities <= self.num_nodes:
            raise UserError(
                f"--communities {self.num_communities}: expected {self.num_classes} … {self.num_nodes}, "
                "from one a class to one a node"
            )

    @property
    def num_edges(self) -> int:
        """Undirected edges."""
        return max(1, round(self.num_nodes * self.degree / 2))

    @property
    def num_blocks(self) -> int:
        return self.num_communities or max(self.num_classes, self.num_nodes // DEFAULT_COMMUNITY_SIZE)


@dataclass(frozen=True)
class Places:
    """The nodes laid side by side on a line, each as long as its propensity; communities and classes are
    intervals of it, so that drawing a node is drawing a number.

    Attributes:
        ends: float64 [num_nodes]: where the node at each place ends.
        community: int64 [num_nodes]: of the node at each place.
        community_bounds: float64 [num_blocks + 1] on the line.
        class_of_community: int64 [num_blocks].
        class_bounds: float64 [num_classes + 1] on the line.
    """

    ends: np.ndarray
    community: np.ndarray
    community_bounds: np.ndarray
    class_of_community: np.ndarray
    class_bounds: np.ndarray


def generate_graph(model: BlockModel, fractions: tuple[float, float, float], seed: int) -> Graph:
    """Draw a graph without self-loops and double edges; the same seed gives the same graph.

    It has num_nodes * degree / 2 undirected edges, or somewhat fewer if the blocks have no room for so many.
    Node ids say nothing of class, community or degree.

    Raises:
        UserError: the model asks for what cannot be.
    """
    rng = np.random.default_rng(seed)
    places = _lay_out(model, rng)
    keys = _draw_edges(model, places, rng)
    nid_of_place = rng.permutation(model.num_nodes)
    labels = np.empty(model.num_nodes, dtype=np.int32)
    labels[nid_of_place] = places.class_of_community[places.community]
    structure = simple_csc(
        nid_of_place[keys // model.num_nodes], nid_of_place[keys % model.num_nodes], model.num_nodes, directed=False
    )
    split = random_split(np.ones(model.num_nodes, dtype=bool), fractions, seed)
    nodes = NodeData(
        labels=labels,
        class_names=[str(number) for number in range(model.num_classes)],
        train_mask=split.train_mask,
        val_mask=split.val_mask,
        test_mask=split.test_mask,
        original_ids=np.arange(model.num_nodes, dtype=np.int64),
    )
    return Graph(structure.indptr, structure.indices, nodes, is_directed=False)


def _lay_out(model: BlockModel, rng: np.random.Generator) -> Places:
    num_nodes, num_blocks = model.num_nodes, model.num_blocks
    propensity = np.arange(1, num_nodes + 1, dtype=np.float64) ** -model.zipf_exponent
    # Beyond sqrt(2 * num_edges) expected neighbours, two hubs would be joined more than once.
    share_at_most = 1 / np.sqrt(num_nodes * model.degree)
    propensity = np.minimum(propensity, share_at_most * propensity.sum())
    ends = np.cumsum(rng.permutation(propensity))

    community = np.arange(num_nodes, dtype=np.int64) * num_blocks // num_nodes
    class_of_community = np.arange(num_blocks, dtype=np.int64) * model.num_classes // num_blocks
    starts = np.concatenate(([0.0], ends))
    first_place = np.searchsorted(community, np.arange(num_blocks + 1))
    first_community = np.searchsorted(class_of_community, np.arange(model.num_classes + 1))
    return Places(
        ends=ends,
        community=community,
        community_bounds=starts[first_place],
        class_of_community=class_of_community,
        class_bounds=starts[first_place][first_community],
    )


def _draw_edges(model: BlockModel, places: Places, rng: np.random.Generator) -> np.ndarray:
    """int64 [num_edges], ascending: smaller place * num_nodes + larger place."""
    num_edges = model.num_edges
    keys = np.empty(0, dtype=np.int64)
    # What falls on a self-loop or on an edge that exists is drawn again. The surplus spares most of the rounds.
    for _ in range(MAX_ROUNDS):
        num_missing = num_edges - len(keys)
        if num_missing <= 0:
            break
        num_drawn = num_missing + num_missing // 16 + 16
        drawn = [keys]
        for start in range(0, num_drawn, CHUNK_EDGES):
            drawn.append(_draw_chunk(model, places, rng, min(CHUNK_EDGES, num_drawn - start)))
        keys = sorted_unique(np.concatenate(drawn))
    if len(keys) > num_edges:
        keys = np.delete(keys, rng.choice(len(keys), len(keys) - num_edges, replace=False))
    return keys


def _draw_chunk(model: BlockModel, places: Places, rng: np.random.Generator, num_drawn: int) -> np.ndarray:
    length = places.ends[-1]
    last = model.num_nodes - 1
    # Sorted numbers are looked up many times faster, and the order of the edges does not matter.
    points = np.sort(rng.random(num_drawn)) * length
    src = np.minimum(np.searchsorted(places.ends, points, side="right"), last)
    community = places.community[src]
    label = places.class_of_community[community]

    within_class = rng.random(num_drawn) < model.homophily
    if model.num_classes == 1:
        within_class[:] = True
    within_community = within_class & (rng.random(num_drawn) < model.locality)
    class_start, class_end = places.class_bounds[label], places.class_bounds[label + 1]
    low = np.where(within_community, places.community_bounds[community], class_start)
    high = np.where(within_community, places.community_bounds[community + 1], class_end)
    # To leave the class, draw from the line without its interval, then step over it.
    span = np.where(within_class, high - low, length - (class_end - class_start))
    points = rng.random(num_drawn) * span
    points += np.where(within_class, low, np.where(points >= class_start, class_end - class_start, 0.0))
    dst = np.minimum(np.searchsorted(places.ends, points, side="right"), last)

    keys = np.minimum(src, dst) * model.num_nodes + np.maximum(src, dst)
    return keys[src != dst]
