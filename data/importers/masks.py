"""Given splits, from a CSV table or an .npz file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import UserError
from ..splits import Split
from .arrays import open_npz, read_member
from .columns import NODE, SPLIT
from .csv_table import open_table
from .node_ids import NodeIds
from .table_options import TableOptions
from .text_file import check_file, shorten

SPLIT_OF_WORD = {"train": 0, "training": 0, "val": 1, "valid": 1, "validation": 1, "test": 2, "none": 3}
MASK_NAMES = ("train_mask", "val_mask", "test_mask")


def read_split(path: Path, node_ids: NodeIds, options: TableOptions) -> Split:
    """Read train, validation and test nodes from a CSV file with the columns node,split, where the split is one of
    train, val, test or none; or from an .npz file with train_mask, val_mask and test_mask over the nodes in order.

    Raises:
        UserError: the file is damaged, or a node is unknown or in two splits.
    """
    check_file(path)
    if Path(path).suffix == ".npz":
        with open_npz(path) as file:
            missing = [name for name in MASK_NAMES if name not in file]
            if missing:
                raise UserError(f"{path}: expected the arrays {', '.join(MASK_NAMES)}; {missing[0]} is missing")
            return split_of_masks([read_member(path, file, name) for name in MASK_NAMES], len(node_ids), str(path))
    return _read_split_table(path, node_ids, options)


def split_of_masks(masks: list[np.ndarray], num_nodes: int, origin: str) -> Split:
    """Train, validation and test from three arrays [num_nodes] of booleans, or of zeros and ones.

    Raises:
        UserError: the arrays have another shape or other values, or overlap.
    """
    for name, mask in zip(MASK_NAMES, masks):
        is_mask = mask.shape == (num_nodes,) and mask.dtype.kind in "biu" and bool(((mask == 0) | (mask == 1)).all())
        if not is_mask:
            raise UserError(
                f"{origin}: '{name}': expected booleans of shape [{num_nodes}], found {mask.dtype} {list(mask.shape)}"
            )
    split = Split(*(mask.astype(bool) for mask in masks))
    times = np.sum([mask.astype(np.int8) for mask in masks], axis=0)
    if (times > 1).any():
        raise UserError(f"{origin}: {int((times > 1).sum())} nodes are in more than one of train, validation and test")
    return split


def split_of_nodes(nodes: list[np.ndarray], num_nodes: int, origin: str) -> Split:
    """Train, validation and test from three lists of nodes, each int64 [num].

    Raises:
        UserError: a node is out of range, or in two lists.
    """
    masks = []
    for members in nodes:
        if len(members) and not 0 <= members.min() <= members.max() < num_nodes:
            raise UserError(f"{origin}: expected nodes in 0 … {num_nodes - 1}, found others")
        mask = np.zeros(num_nodes, dtype=bool)
        mask[members] = True
        masks.append(mask)
    return split_of_masks(masks, num_nodes, origin)


def _read_split_table(path: Path, node_ids: NodeIds, options: TableOptions) -> Split:
    table = open_table(path, (NODE, SPLIT), options)
    options.accounts["split"] = table.account
    (nodes,) = node_ids.read_node_columns(table, [0])

    import pandas

    codes, words = pandas.factorize(table.read_texts([1])[0])
    unknown = [word for word in words if word.lower() not in SPLIT_OF_WORD]
    if unknown:
        line, _ = table.first_line(1, lambda value: value == unknown[0])
        raise UserError(f"{path}, line {line}: expected train, val, test or none, found {shorten(unknown[0])!r}")
    splits = np.array([SPLIT_OF_WORD[word.lower()] for word in words], dtype=np.int64)[codes]
    return split_of_nodes([nodes[splits == number] for number in range(3)], len(node_ids), str(path))
