"""The partition book: which part owns which nodes. A pure value, stored as parts/book.json."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from glpilot.data.errors import UserError
from glpilot.data.sealed_json import read_sealed, write_sealed

FORMAT_VERSION = 1
FILE_NAME = "book.json"


@dataclass(frozen=True)
class PartitionBook:
    """Ranges of relabelled node ids by part, and how good the partition is.

    Attributes:
        offsets: num_parts + 1 ascending numbers; part p owns the nids offsets[p] … offsets[p + 1] - 1.
        method: metis, random, range, or the assignment file's name.
        seed: what `method` "random" drew from; the other methods use none.
        num_edges: in-edges over all parts, as stored: an undirected edge counts twice.
        edge_cut: edges whose ends lie in different parts. In a directed graph every stored edge counts for
            itself; in an undirected one the two stored directions count once, so compare it with num_edges / 2.
        balance: largest part over mean part, for "nodes" owned, stored in-"edges" of those, and "train_nodes"
            owned; 1 is best, and stands where there are none at all.
        replication: for a node, the part that owns it and the other parts that have it as the source of an
            in-edge; the mean of their number over nodes (1 is best).
        dtype_bits: 32 or 64, the width of `indices` in every part file: it holds every nid and the position
            of every edge of the whole graph, because DGL wants indptr and indices of one type.
    """

    graph_hash: str
    num_nodes: int
    num_edges: int
    num_classes: int
    num_features: int
    is_multilabel: bool
    is_directed: bool
    method: str
    seed: int
    offsets: tuple[int, ...]
    edge_cut: int
    balance: dict[str, float]
    replication: float
    dtype_bits: int

    @property
    def num_parts(self) -> int:
        return len(self.offsets) - 1

    def part_of(self, nids: np.ndarray) -> np.ndarray:
        """The part that owns each nid, int64 like `nids`."""
        return np.searchsorted(np.asarray(self.offsets[1:]), nids, side="right")


def write_book(folder: Path, book: PartitionBook) -> None:
    """Write book.json; the last file of a partition to be written, so that it marks it complete."""
    write_sealed(Path(folder) / FILE_NAME, FORMAT_VERSION, asdict(book))


def read_book(folder: Path) -> PartitionBook:
    """Read and check book.json.

    Raises:
        UserError: there is none, or it is damaged, or of another version.
    """
    path = Path(folder) / FILE_NAME
    try:
        content = read_sealed(path, FORMAT_VERSION)
        book = PartitionBook(**{**content, "offsets": tuple(int(offset) for offset in content["offsets"])})
    except FileNotFoundError:
        raise UserError(
            f"{path}: no such file; make the parts with: glpilot partition graph.h5 --parts N {folder}"
        ) from None
    except UserError as error:
        raise UserError(f"{error}; run glpilot partition again") from None
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: not a partition book ({error}); run glpilot partition again") from error
    offsets = np.asarray(book.offsets)
    if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != book.num_nodes or (np.diff(offsets) < 0).any():
        raise UserError(f"{path}: the ranges of nodes do not cover 0 … {book.num_nodes}; run glpilot partition again")
    return book
