"""What is known of the nodes: from files of their own, else from the file that the edges come from."""

from __future__ import annotations

from pathlib import Path

from ..errors import UserError
from ..graph import NodeData
from ..splits import Split, empty_split, labelled_nodes, random_split
from .arrays import check_rows, read_array
from .labels import Labels, labels_of_array, read_label_table, unknown_labels
from .masks import read_split
from .source import Source
from .table_options import TableOptions

DEFAULT_FRACTIONS = (0.6, 0.2, 0.2)


def read_node_data(
    source: Source,
    labels_path: Path | None = None,
    multilabel: bool = False,
    split_path: Path | None = None,
    fractions: tuple[float, float, float] | None = None,
    seed: int = 1,
    features_path: Path | None = None,
    embeddings_path: Path | None = None,
    options: TableOptions | None = None,
) -> tuple[NodeData, int, dict[str, int]]:
    """Gather labels, splits, features and initial embeddings of a source's nodes.

    A file that is given wins over what the source holds. The split is the given one; else that of `fractions`;
    else the source's; else 0.6, 0.2, 0.2. Nodes without a label are in no split.

    Returns:
        The node data; how many nodes a given split names although they have no label; mark of no label → how often it
        was found.

    Raises:
        UserError: a file is missing or damaged, does not fit the nodes, or gives rows in an unknown order.
    """
    options = options or TableOptions()
    for path in (features_path, embeddings_path, labels_path, split_path):
        if path is not None and Path(path).suffix in (".npy", ".npz"):
            _check_order(source, path)
    num_nodes = len(source.node_ids)
    labels = _read_labels(source, labels_path, multilabel, options)
    labelled = labelled_nodes(labels.values)
    if not labelled.any():
        split = empty_split(num_nodes)
    elif split_path is not None:
        split = read_split(split_path, source.node_ids, options)
    elif source.split is not None and fractions is None:
        split = source.split
    else:
        split = random_split(labelled, fractions or DEFAULT_FRACTIONS, seed)
    usable: Split = split.restricted_to(labelled)
    nodes = NodeData(
        labels=labels.values,
        class_names=labels.class_names,
        train_mask=usable.train_mask,
        val_mask=usable.val_mask,
        test_mask=usable.test_mask,
        original_ids=source.node_ids.values,
        features=_read_rows(features_path, num_nodes) if features_path else source.features,
        embeddings=_read_rows(embeddings_path, num_nodes) if embeddings_path else None,
    )
    return nodes, split.num_assigned - usable.num_assigned, labels.marks


def _read_labels(source: Source, path: Path | None, multilabel: bool, options: TableOptions) -> Labels:
    num_nodes = len(source.node_ids)
    if path is None:
        return source.labels or unknown_labels(num_nodes)
    if Path(path).suffix == ".npy":
        return labels_of_array(read_array(path), num_nodes, str(path), options.marks)
    return read_label_table(path, source.node_ids, multilabel, options)


def _read_rows(path: Path, num_nodes: int):
    return check_rows(read_array(path), num_nodes, str(path))


def _check_order(source: Source, path: Path) -> None:
    if not source.node_ids.is_range and not source.node_ids.is_listed:
        raise UserError(
            f"{path}: row i belongs to node i, but the ids in {source.given_in} are not "
            f"0 … {len(source.node_ids) - 1}; give --node-ids FILE with the ids in the order of the rows, "
            "or --num-nodes N if some ids have no edge"
        )
