"""Start-up refuses an MPI that cannot work."""

from __future__ import annotations

import pytest
from mpi4py import MPI

from glpilot.app.runtime.communicator import check_thread_level, check_world_size
from glpilot.data.errors import UserError


def test_threads_may_call_mpi():
    check_thread_level(MPI.THREAD_MULTIPLE)


@pytest.mark.parametrize("level", [MPI.THREAD_SINGLE, MPI.THREAD_FUNNELED, MPI.THREAD_SERIALIZED])
def test_a_lower_thread_level_is_refused(level):
    with pytest.raises(UserError, match=f"MPI_THREAD_MULTIPLE .*got {level};"):
        check_thread_level(level)


@pytest.mark.parametrize(
    "size, environment",
    [
        (1, {}),
        (4, {}),
        (4, {"PMI_SIZE": "4"}),
        (1, {"PMI_SIZE": "1"}),
        (2, {"PMI_SIZE": ""}),
        (2, {"OMPI_COMM_WORLD_SIZE": "many"}),
        (4, {"SLURM_NTASKS": "8"}),  # of the allocation, not of this program
        (4, {"PMI_SIZE": "4", "SLURM_STEP_NUM_TASKS": "2"}),  # mpirun inside a Slurm step
        (4, {"PMI_SIZE": "", "OMPI_COMM_WORLD_SIZE": "4"}),
    ],
)
def test_a_world_as_promised(size, environment):
    check_world_size(size, environment)


@pytest.mark.parametrize("name", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "SLURM_STEP_NUM_TASKS"])
@pytest.mark.parametrize("size, promised", [(1, 4), (4, 1), (2, 16)])
def test_a_world_that_differs_from_the_promise_is_refused(name, size, promised):
    with pytest.raises(UserError, match=rf"promised {promised} ranks \({name}\), but MPI sees {size}"):
        check_world_size(size, {name: str(promised)})
