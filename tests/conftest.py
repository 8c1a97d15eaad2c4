"""How tests run on several ranks: the same tests on each, with one verdict.

Tests marked `mpi` run under `mpirun -np N python -m pytest -m mpi`. After each of them the ranks compare their
outcomes, so that a failure on one rank fails the test on all and names the rank. Rank 0 alone reports. A test that
takes longer than its limit ends the whole job, for a deadlock cannot be left in any other way.
"""

from __future__ import annotations

import faulthandler
import os
import sys

import pytest

LIMIT_SECONDS = 120


def is_multi_rank() -> bool:
    return any(int(os.environ.get(name, "1")) > 1 for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE"))


def my_rank() -> int:
    return next((int(os.environ[name]) for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK") if name in os.environ), 0)


def pytest_configure(config):
    config.addinivalue_line("markers", "mpi: runs on the ranks of mpirun, all of them together")
    config.addinivalue_line("markers", "hosts: how ranks lie on hosts matters")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    if my_rank() > 0:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        reporter._tw._file = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives


@pytest.hookimpl(trylast=True)  # after -m has chosen
def pytest_collection_modifyitems(items):
    if is_multi_rank() and any(item.get_closest_marker("mpi") is None for item in items):
        pytest.exit("under mpirun only tests marked mpi can run: give -m mpi", returncode=4)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    # The watchdog is a thread of C code: it also ends a rank that is stuck inside MPI.
    faulthandler.dump_traceback_later(LIMIT_SECONDS, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    outcome = yield
    if item.get_closest_marker("mpi") is None or not is_multi_rank():
        return
    from mpi4py import MPI

    failure = outcome.excinfo[1] if outcome.excinfo else None
    is_failure = failure is not None and not isinstance(failure, pytest.skip.Exception)
    verdicts = MPI.COMM_WORLD.allgather(f"{type(failure).__name__}: {failure}" if is_failure else None)
    failed = {rank: verdict for rank, verdict in enumerate(verdicts) if verdict is not None}
    if failed and not is_failure:
        lines = "\n".join(f"rank {rank}: {verdict}" for rank, verdict in failed.items())
        outcome.force_exception(AssertionError(f"failed on ranks {sorted(failed)}, not on this one\n{lines}"))


@pytest.fixture(scope="session")
def communicator():
    """The ranks of this run; Horovod can be started only once a process."""
    from glpilot.app.runtime.communicator import Communicator

    communicator = Communicator()
    yield communicator
    communicator.free()


@pytest.fixture
def shared_folder(communicator, tmp_path_factory):
    """A temporary folder that all ranks see, the same on each."""
    return communicator.world.bcast(tmp_path_factory.mktemp("shared") if communicator.rank == 0 else None)
