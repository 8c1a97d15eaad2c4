"""Shows on two ranks that the installed stack works together; jobs/setup.sh ends with it.

    bash jobs/mpi.sh 2 python jobs/smoke_test.py

Exit code 0 and one line if everything works; else the rank that failed says what did.
"""

from __future__ import annotations

import contextlib
import os
import sys

os.environ.setdefault("DGLBACKEND", "pytorch")  # without it DGL writes a file into the home folder

import horovod.torch as hvd  # first, as in app/runtime/communicator.py: mpi4py takes the MPI that Horovod has loaded
import numpy as np
import torch
from mpi4py import MPI

from glpilot.app.doctor.horovod import check_same_mpi
from glpilot.app.doctor.mpi import check_thread_level, loaded_mpi_libraries

WORLD = MPI.COMM_WORLD


def expect(condition: bool, what: str) -> None:
    if not condition:
        print(f"smoke test, rank {WORLD.rank} of {WORLD.size}: {what}", file=sys.stderr, flush=True)
        WORLD.Abort(1)


def test_one_mpi() -> None:
    """Collective."""
    expect(WORLD.size == 2, f"expected two ranks, got {WORLD.size}: is mpirun of another MPI?")
    for finding in check_thread_level(MPI.Query_thread()) + check_same_mpi(loaded_mpi_libraries()):
        expect(False, f"{finding.problem}: {finding.remedy}")
    expect((hvd.size(), hvd.rank()) == (WORLD.size, WORLD.rank), "Horovod and mpi4py count the ranks differently")


def test_rma_get() -> None:
    """Collective: each rank reads the other's row."""
    window = MPI.Win.Allocate(8 * 4, 8, comm=WORLD)
    memory = np.frombuffer(window.tomemory(), dtype=np.float64)  # type: ignore[call-overload]
    memory[:] = WORLD.rank
    window.Fence()
    row = np.full(4, -1.0)
    peer = 1 - WORLD.rank
    window.Lock_all()
    window.Get(row, peer)
    window.Flush(peer)
    window.Unlock_all()
    window.Fence()
    window.Free()
    expect(bool((row == peer).all()), f"an RMA Get from rank {peer} returned {row}")


def test_sparse_allreduce() -> None:
    """Collective: rank r gives r rows, so one rank has none."""
    indices = torch.arange(WORLD.rank)[None]
    rows = torch.sparse_coo_tensor(indices, torch.ones(WORLD.rank, 3), (4, 3))
    total = hvd.sparse_allreduce_async(rows, name="smoke", op=hvd.Sum)().to_dense()
    expect(total.sum().item() == 3.0, f"Horovod's sparse allreduce returned {total}")


def test_metis() -> None:
    import dgl

    graph = dgl.to_bidirected(dgl.rand_graph(100, 400, idtype=torch.int64))
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):  # it reports its timings
        parts = dgl.metis_partition_assignment(graph, 2)
    expect(sorted(set(parts.tolist())) == [0, 1], "DGL's METIS did not make two parts")


def main() -> int:
    torch.set_num_threads(1)
    hvd.init()
    test_one_mpi()
    test_rma_get()
    test_sparse_allreduce()
    if WORLD.rank == 0:
        test_metis()
    WORLD.Barrier()
    hvd.shutdown()
    if WORLD.rank == 0:
        print("smoke test: one MPI library, MPI_THREAD_MULTIPLE, RMA Get, sparse allreduce and METIS work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
