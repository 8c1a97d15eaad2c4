"""METIS through DGL, in a process of its own.

The METIS in DGL reads memory that it never wrote, so that the partition depends on what the heap happens to
hold. A fresh process whose allocator fills every block with one byte gives the same partition every time. The
process also keeps DGL's messages off the terminal, and keeps the files that METIS pages a large graph out to
(into the working folder, named by process id) out of the user's folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import numpy as np

from glpilot.data.errors import UserError

# Of glibc: fill memory on allocation and release, and keep no cache of blocks that would skip the filling.
_ALLOCATOR = "glibc.malloc.perturb=85:glibc.malloc.tcache_count=0"
_ARGUMENTS = ("indptr", "indices", "node_kinds")


def partition_by_metis(indptr: np.ndarray, indices: np.ndarray, node_kinds: np.ndarray, num_parts: int) -> np.ndarray:
    """The multilevel k-way partition of METIS (Karypis and Kumar, 1998); some parts may come out empty.

    Balances, for every kind of node, the number of nodes and of their in-edges. Temporary files go where
    TMPDIR says.

    Args:
        indptr, indices: in-edges, int64 [num_nodes + 1] and int [num_edges]; no edge from a node to itself.
            METIS needs symmetry, so DGL adds the reverse of every edge.
        node_kinds: int [num_nodes].
        num_parts: at least 2; METIS divides by zero for one.

    Returns:
        int32 [num_nodes], the part of every node.

    Raises:
        UserError: the temporary files do not fit.
        RuntimeError: METIS failed.
    """
    assert num_parts > 1
    with tempfile.TemporaryDirectory(prefix="glpilot-metis-") as folder:
        try:
            for name, array in zip(_ARGUMENTS, (indptr, indices, node_kinds)):
                np.save(f"{folder}/{name}.npy", array)
        except OSError as error:
            raise UserError(f"cannot write to {folder}: {error}; set TMPDIR to a folder with more room") from error
        tunables = filter(None, (os.environ.get("GLIBC_TUNABLES"), _ALLOCATOR))
        child = subprocess.run(
            [sys.executable, "-m", "glpilot.partition.metis", str(num_parts)],
            cwd=folder,
            env={
                **os.environ,
                "GLIBC_TUNABLES": ":".join(tunables),
                # relative entries would not survive the change of folder
                "PYTHONPATH": os.pathsep.join(os.path.abspath(entry) for entry in sys.path),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if child.returncode:
            last_lines = "\n".join(child.stdout.splitlines()[-5:])
            raise RuntimeError(f"METIS ended with code {child.returncode} (-9: out of memory?)\n{last_lines}")
        return np.load(f"{folder}/part_id.npy")


def call_dgl(indptr: np.ndarray, indices: np.ndarray, node_kinds: np.ndarray, num_parts: int) -> np.ndarray:
    """The same in the calling process: not reproducible, and not quiet."""
    os.environ.setdefault("DGLBACKEND", "pytorch")
    import dgl
    import torch

    # DGL's METIS takes 64-bit ids only.
    in_edges = [torch.from_numpy(array.astype(np.int64)) for array in (indptr, indices)]
    graph = dgl.graph(("csc", (*in_edges, torch.empty(0, dtype=torch.int64))), num_nodes=len(node_kinds))
    return (
        dgl.metis_partition_assignment(
            graph, num_parts, balance_ntypes=torch.from_numpy(node_kinds), balance_edges=True, mode="k-way"
        )
        .numpy()
        .astype(np.int32)
    )


def main() -> None:
    """The process of its own: from files in its working folder to another."""
    indptr, indices, node_kinds = (np.load(f"{name}.npy") for name in _ARGUMENTS)
    for name in _ARGUMENTS:
        os.unlink(f"{name}.npy")  # METIS may want the space
    np.save("part_id.npy", call_dgl(indptr, indices, node_kinds, int(sys.argv[1])))


if __name__ == "__main__":
    main()
