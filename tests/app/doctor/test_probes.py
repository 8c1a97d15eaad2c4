"""The checks of `glpilot doctor` are functions of what was found: each finds its own fault and nothing else."""

from __future__ import annotations

import pytest

from glpilot.app.commands import doctor as command
from glpilot.app.doctor import gpus, horovod, machine, mpi, packages
from glpilot.app.doctor.render import render, show_ranks_per_host
from glpilot.app.doctor.report import Finding, Report, show_bytes

MPICH = "MPICH Version:      5.0.2\nMPICH Release date: Fri Sep 25\nMPICH ABI:          19:0:7"
OPEN_MPI_4 = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022"
OPEN_MPI_5 = "Open MPI v5.0.11, package: Open MPI, ident: 5.0.11"
HYDRA = "HYDRA build details:\n    Version:                                 5.0.2\n    CC: cc"
OPEN_MPI_4_MPIRUN = "mpirun (Open MPI) 4.1.4\n\nReport bugs to ..."


@pytest.mark.parametrize(
    "text, expected",
    [
        (MPICH, ("MPICH", "5.0.2")),
        (HYDRA, ("MPICH", "5.0.2")),
        (OPEN_MPI_4, ("Open MPI", "4.1.4")),
        (OPEN_MPI_4_MPIRUN, ("Open MPI", "4.1.4")),
        (OPEN_MPI_5, ("Open MPI", "5.0.11")),
        ("Intel(R) MPI Library 2021.6 for Linux* OS", None),
        ("", None),
    ],
)
def test_mpi_flavour(text, expected):
    assert mpi.mpi_flavour(text) == expected


# Every check with input that is right, and with input that is wrong and a word that its finding must hold.
CHECKS = [
    (packages.check_python, [(3, 9)], [(3, 12)], "3.12"),
    (packages.check_packages, [{}], [{"dgl": "ImportError: libgraphbolt"}], "libgraphbolt"),
    (
        packages.check_pins,
        [["torch==2.2.1", "numpy<2"], {"torch": "2.2.1+cu121"}],
        [["torch==2.2.1"], {"torch": "2.3.0"}],
        "2.3.0",
    ),
    (horovod.check_environment, [{"HOROVOD_CONTROLLER": "mpi"}], [{"HOROVOD_CONTROLLER": "gloo"}], "CONTROLLER"),
    (mpi.check_thread_level, [3], [2], "MPI_THREAD_SERIALIZED"),
    (mpi.check_mpi_version, [MPICH], [OPEN_MPI_4], "one-sided"),
    (mpi.check_mpi_version, [OPEN_MPI_5], [OPEN_MPI_4], "4.1.4"),
    (horovod.check_same_mpi, [["/a/libmpi.so.12"]], [["/a/libmpi.so.12", "/b/libmpi.so.40"]], "/b/libmpi.so.40"),
    (horovod.check_horovod_build, [True], [False], "without MPI"),
    (horovod.check_horovod_world, [4, 4], [1, 4], "4"),
    (mpi.check_world_size, [4, {"PMI_SIZE": "4"}], [1, {"PMI_SIZE": "4"}], "PMI_SIZE"),
    (mpi.check_world_size, [1, {}], [1, {"OMPI_COMM_WORLD_SIZE": "2"}], "promised 2"),
    # under Slurm, mpirun's promise for this program counts, not that for the proxies it starts
    (
        mpi.check_world_size,
        [4, {"PMI_SIZE": "4", "SLURM_STEP_NUM_TASKS": "2"}],
        [1, {"SLURM_STEP_NUM_TASKS": "2"}],
        "SLURM",
    ),
    (mpi.check_mpirun, ["/v/mpirun", HYDRA, MPICH], ["/usr/bin/mpirun", OPEN_MPI_4_MPIRUN, MPICH], "/usr/bin/mpirun"),
    (mpi.check_mpirun, ["/v/mpirun", "something else", MPICH], [None, "", MPICH], "no mpirun"),
    (machine.check_shared_memory, [8 << 30, 4 << 30], [64 << 20, 64 << 20], "64 MiB"),
    (gpus.check_gpu, [0, False], [2, False], "2 GPU"),
    (machine.check_compiler, [None, True], [None, False], "compiler"),
]


@pytest.mark.parametrize("check, right, wrong, word", CHECKS, ids=lambda value: getattr(value, "__name__", None))
def test_check(check, right, wrong, word):
    assert check(*right) == []
    (finding,) = check(*wrong)
    assert word in finding.problem
    assert finding.remedy and "\n" not in finding.problem + finding.remedy


def test_full_shared_memory_is_mended_otherwise_than_a_small_one():
    (small,) = machine.check_shared_memory(64 << 20, 64 << 20)
    (full,) = machine.check_shared_memory(8 << 30, 1 << 20)
    assert "--shm-size" in small.remedy and "remove" in full.remedy


@pytest.mark.parametrize(
    "count, expected",
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (24 << 30, "24 GiB"), (3 << 40, "3.0 TiB")],
)
def test_show_bytes(count, expected):
    assert show_bytes(count) == expected


def test_ranks_per_host_in_rank_order():
    assert show_ranks_per_host(["b", "b", "a"]) == "2 on b, 1 on a"


def test_a_finding_of_all_ranks_is_one_line_that_names_its_hosts():
    finding = Finding("too little", "buy more")
    lines, num_findings = render([Report("a"), Report("b", findings=[finding]), Report("b", findings=[finding])])
    assert num_findings == 1
    assert [line for line in lines if line.startswith("wrong")] == ["wrong: too little (on b); mend: buy more"]


def test_hosts_with_other_versions():
    lines, num_findings = render([Report("a", {"torch": "2.2.1"}), Report("b", {"torch": "2.3.0"})])
    assert num_findings == 1
    assert any("torch 2.3.0 on b, 2.2.1 on a" in line for line in lines)


def test_a_missing_package_is_a_finding(monkeypatch):
    monkeypatch.setitem(packages.PACKAGES, "no_such_module", "no-such-package")
    report = Report("here")
    packages.probe(report)
    assert report.facts["no-such-package"] == "missing"
    assert any("no-such-package" in finding.problem for finding in report.findings)


@pytest.mark.mpi
def test_doctor_speaks_once_and_agrees_on_its_exit_code(capsys):
    from mpi4py import MPI

    code = command.run(None)
    assert MPI.COMM_WORLD.allgather(code) == [code] * MPI.COMM_WORLD.size
    printed = capsys.readouterr().out
    assert bool(printed) == (MPI.COMM_WORLD.rank == 0)
    if printed:
        assert "MPI_THREAD_MULTIPLE" in printed
        assert f"{MPI.COMM_WORLD.size} on " in printed
