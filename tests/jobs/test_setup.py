"""What of the set-up can be tested without building anything: refusals, patches, keys, the launcher's options."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile

import pytest

from helpers.launch import CHECKOUT

sys.path.insert(0, str(CHECKOUT / "jobs"))  # the scripts import their neighbours

import build_horovod
import system_mpi
import wheel_cache


def write_program(folder, name, body):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def programs(tmp_path):
    """A folder for fake programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


# --- the patches --------------------------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path):
    """A source that all patches fit."""
    for patch in build_horovod.choose_patches(with_gpu=False):
        path = tmp_path / "horovod" / patch.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((path.read_text() if path.exists() else "") + f"before\n{patch.old}after\n")
    return tmp_path / "horovod"


def test_patches_replace_what_they_name(source):
    patches = build_horovod.choose_patches(with_gpu=False)
    build_horovod.apply_patches(source, patches)
    for patch in patches:
        text = (source / patch.file).read_text()
        assert patch.new in text
        assert patch.old in patch.new or patch.old not in text


def test_a_changed_source_is_refused_and_left_alone(source):
    changed = source / "horovod/torch/CMakeLists.txt"
    changed.write_text("set(CMAKE_CXX_STANDARD 20)\n")
    before = {path: path.read_text() for path in source.rglob("*") if path.is_file()}
    with pytest.raises(build_horovod.BuildError, match="horovod/torch/CMakeLists.txt.*found it 0 times"):
        build_horovod.apply_patches(source, build_horovod.choose_patches(with_gpu=False))
    assert before == {path: path.read_text() for path in source.rglob("*") if path.is_file()}


def test_an_ambiguous_source_is_refused(source):
    path = source / "horovod/runner/mpi_run.py"
    path.write_text(path.read_text() * 2)
    with pytest.raises(build_horovod.BuildError, match="found it 2 times"):
        build_horovod.apply_patches(source, build_horovod.choose_patches(with_gpu=False))


def test_a_source_without_the_file_is_refused(source):
    (source / "CMakeLists.txt").unlink()
    with pytest.raises(build_horovod.BuildError, match="no such file"):
        build_horovod.apply_patches(source, build_horovod.choose_patches(with_gpu=False))


def test_the_cuda_probe_stays_on_for_a_gpu_build():
    files = [patch.file for patch in build_horovod.choose_patches(with_gpu=True)]
    assert "cmake/Modules/FindPytorch.cmake" not in files
    assert "cmake/Modules/FindPytorch.cmake" in [p.file for p in build_horovod.choose_patches(with_gpu=False)]


# --- unpacking, options, keys -------------------------------------------------------------------------------------


def make_archive(path, *members):
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))


def test_unpack_refuses_members_outside_and_links(tmp_path):
    plain = tarfile.TarInfo("horovod/setup.py")
    plain.size = 1
    outside = tarfile.TarInfo("../outside.txt")
    absolute = tarfile.TarInfo(str(tmp_path / "absolute.txt"))
    link = tarfile.TarInfo("horovod/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/"
    for number, bad in enumerate((outside, absolute, link)):
        archive, folder = tmp_path / f"{number}.tar.gz", tmp_path / str(number)
        folder.mkdir()
        make_archive(archive, plain, bad)
        with pytest.raises(build_horovod.BuildError, match="refusing to unpack"):
            build_horovod.unpack(archive, folder)
        assert list(folder.iterdir()) == []  # nothing at all was unpacked
    make_archive(tmp_path / "good.tar.gz", plain)
    build_horovod.unpack(tmp_path / "good.tar.gz", tmp_path)
    assert (tmp_path / "horovod/setup.py").read_bytes() == b"x"


def test_options_are_ours_and_the_users_alone():
    options = build_horovod.choose_options(
        {"HOROVOD_GPU_OPERATIONS": "NCCL", "HOROVOD_CYCLE_TIME": "1", "HOROVOD_NCCL_HOME": ""}
    )
    assert options == {**build_horovod.FIXED_OPTIONS, "HOROVOD_GPU_OPERATIONS": "NCCL"}


def test_the_key_tells_binaries_apart(monkeypatch):
    options = build_horovod.choose_options({})
    gpu_options = build_horovod.choose_options({"HOROVOD_GPU_OPERATIONS": "NCCL"})
    key = build_horovod.build_key("MPICH 5.0.2", "2.2.1", options)
    assert key == build_horovod.build_key("MPICH 5.0.2", "2.2.1", options)
    others = {
        build_horovod.build_key("MPICH 4.0.2", "2.2.1", options),
        build_horovod.build_key("MPICH 5.0.2", "2.2.2", options),
        build_horovod.build_key("MPICH 5.0.2", "2.2.1", gpu_options),
    }
    monkeypatch.setattr(build_horovod, "CPU_PATCHES", ())
    others.add(build_horovod.build_key("MPICH 5.0.2", "2.2.1", options))
    assert len(others) == 4 and key not in others


# --- the wheels kept ----------------------------------------------------------------------------------------------


def fake_build(text, meanwhile=lambda: None):
    """Stands in for the minutes of building: a wheel with the given text."""

    def build(folder, log):
        log.write_text("built\n")
        (folder / "wheels").mkdir()
        (folder / "wheels" / "horovod-0-any.whl").write_text(text)
        meanwhile()
        return folder / "wheels"

    return build


def test_a_wheel_is_built_once(tmp_path):
    wheel = wheel_cache.find_or_build(tmp_path, "key", fake_build("first"), "")
    assert wheel_cache.find_or_build(tmp_path, "key", fake_build("second"), "") == wheel
    assert wheel.read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["key"]  # no leftovers
    assert wheel_cache.find_or_build(tmp_path, "other", fake_build("other"), "").read_text() == "other"


def test_two_builds_at_once_share_the_first_wheel(tmp_path):
    wheels = []

    def other_set_up_is_faster():
        wheels.append(wheel_cache.find_or_build(tmp_path, "key", fake_build("faster"), ""))

    assert wheel_cache.find_or_build(tmp_path, "key", fake_build("slower", other_set_up_is_faster), "") == wheels[0]
    assert wheels[0].read_text() == "faster"


def test_a_failed_build_names_its_log_and_leaves_no_wheel(tmp_path):
    def build(folder, log):
        wheel_cache.run_logged([sys.executable, "-c", "print('the reason'); raise SystemExit(1)"], log, os.environ)

    with pytest.raises(wheel_cache.BuildError) as error:
        wheel_cache.find_or_build(tmp_path, "key", build, "")
    (log,) = tmp_path.iterdir()
    assert str(log) in str(error.value)
    assert log.read_text() == "the reason\n"


# --- the MPI of the system ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "HYDRA build details:\n    Version: 4.0.2",
        "MPICH Version:\t4.0.2",
        "mpirun (Open MPI) 5.0.11",
        "Open MPI v5.0.11, package",
    ],
)
def test_supported_mpi(text):
    assert system_mpi.refuse_version(text) is None


@pytest.mark.parametrize(
    "text", ["mpirun (Open MPI) 4.1.4", "mpirun (Open MPI) 4.1.4\n\nReport bugs", "Open MPI v4.1.4, package: D"]
)
def test_open_mpi_4_is_refused_with_the_reason(text):
    reason = system_mpi.refuse_version(text)
    assert "4.1.4" in reason and "one-sided" in reason and "MPI_THREAD_MULTIPLE" in reason


def test_an_unknown_mpi_is_refused():
    assert "something new" in system_mpi.refuse_version("something new 1.0\nmore")


def run_setup(programs, tmp_path, **variables):
    """setup.sh of a copy of the checkout's set-up files; it must end before it installs anything."""
    copy = tmp_path / "a checkout"
    (copy / "jobs").mkdir(parents=True)
    for name in ("setup.cfg", "pyproject.toml", *(f"jobs/{path.name}" for path in (CHECKOUT / "jobs").glob("*.*"))):
        (copy / name).write_bytes((CHECKOUT / name).read_bytes())
    environ = {"HOME": str(tmp_path), "PATH": f"{programs}:/usr/bin:/bin", **variables}
    done = subprocess.run(
        ["bash", str(copy / "jobs/setup.sh")], env=environ, cwd="/", capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert not (copy / ".venv").exists()
    return done.stderr


def test_setup_refuses_an_open_mpi_4(programs, tmp_path):
    for name in ("mpicc", "mpicxx"):
        write_program(programs, name, "exit 1")
    write_program(programs, "mpirun", "echo 'mpirun (Open MPI) 4.1.4'")
    errors = run_setup(programs, tmp_path, GLPILOT_MPI="system", GLPILOT_PYTHON=sys.executable)
    assert "Open MPI 4.1.4 has no one-sided component" in errors


def test_setup_refuses_a_python_that_is_too_new(programs, tmp_path):
    python = write_program(programs, "new_python", "cat >/dev/null; echo 'is Python 3.13'; exit 1")
    assert f"{python}: is Python 3.13" in run_setup(programs, tmp_path, GLPILOT_PYTHON=str(python))


def test_setup_refuses_a_wrong_choice(programs, tmp_path):
    errors = run_setup(programs, tmp_path, GLPILOT_MPI="lam", GLPILOT_PYTHON=sys.executable)
    assert "GLPILOT_MPI=lam: expected wheel or system" in errors


def test_setup_needs_a_compiler(programs, tmp_path):
    for name in ("bash", "dirname", "cat", "sed", "tail", "cut", "sha256sum"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    errors = run_setup(programs, tmp_path, PATH=str(programs), GLPILOT_PYTHON=sys.executable)
    assert errors == (
        "setup: needs a C++ compiler to build Horovod, and found neither c++ nor g++ (Debian: apt install g++)\n"
    )


# --- the launcher, and the sums of test.sh ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "version, expected",
    [
        ("HYDRA build details:", "-np 3 -bind-to none true"),
        ("mpirun (Open MPI) 5.0.11", "--bind-to none --oversubscribe"),
    ],
)
def test_launcher_options(programs, tmp_path, version, expected):
    write_program(programs, "mpirun", f'if [ "$1" = --version ]; then echo "{version}"; else echo "$@"; fi')
    (tmp_path / "jobs").mkdir()
    script = tmp_path / "jobs/mpi.sh"
    script.write_bytes((CHECKOUT / "jobs/mpi.sh").read_bytes())
    environ = {"PATH": f"{programs}:/usr/bin:/bin"}
    done = subprocess.run(["bash", str(script), "3", "true"], env=environ, capture_output=True, text=True, check=True)
    assert expected in done.stdout


def run_tests_script(tmp_path, output, code):
    """The sums of test.sh over eight stages that each print `output` and exit with `code`."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    for name in ("test.sh", "mpi.sh"):
        (tmp_path / "jobs" / name).write_bytes((CHECKOUT / "jobs" / name).read_bytes())
    (tmp_path / "jobs/setup.sh").write_text("")
    write_program(tmp_path / ".venv/bin", "python", f'printf "{output}\\n"; exit {code}')
    write_program(
        tmp_path / ".venv/bin", "mpirun", 'while [ $# -gt 0 ]; do case $1 in */python) exec "$@";; esac; shift; done'
    )
    done = subprocess.run(["bash", str(tmp_path / "jobs/test.sh")], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "output, code, expected",
    [
        ("=== 3 passed, 1 skipped in 2.10s ===", 0, (0, "24 passed, 0 failed, 8 skipped")),
        ("1 failed, 3 passed, 2 errors in 61.00s (0:01:01)", 1, (1, "24 passed, 24 failed, 0 skipped")),
        ("=== 3 passed in 2.10s ===", 139, (1, "24 passed, 8 failed, 0 skipped")),
        ("no closing line", 124, (1, "0 passed, 8 failed, 0 skipped")),
        ("=== 9 deselected in 0.10s ===", 5, (1, "0 passed, 1 failed, 0 skipped")),
    ],
)
def test_sums_are_those_of_pytest(tmp_path, output, code, expected):
    assert run_tests_script(tmp_path, output, code) == expected
