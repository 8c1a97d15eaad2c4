#!/usr/bin/env bash
# Makes .venv in this checkout: Python, the stack pinned in setup.cfg, and Horovod built against the MPI in use.
#
#   bash jobs/setup.sh
#
# Needs Python 3.9-3.11 and a C++ compiler; no root. A second run takes seconds.
#   GLPILOT_PYTHON=PATH      the Python to use; else the first of python3.11, 3.10, 3.9, python3 that will do
#   GLPILOT_MPI=wheel|system the MPICH from PyPI (default), or the MPI whose mpicc is on PATH
#   GLPILOT_CACHE=DIR        keeps built Horovod wheels (default: ~/.cache/glpilot)
#   HOROVOD_GPU_OPERATIONS=NCCL, HOROVOD_CUDA_HOME, HOROVOD_NCCL_HOME: build Horovod for GPUs, with a CUDA toolkit
# What was chosen is remembered in .venv, so later runs need not name it again.
set -euo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$checkout/.venv
cache=${GLPILOT_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or GLPILOT_CACHE}/.cache}/glpilot}
choices=$venv/glpilot-choices
stamp=$venv/glpilot-stamp

# An activated .venv must not be taken for the system: its Python and MPI are about to be made.
PATH=:$PATH:
PATH=${PATH//:"$venv/bin":/:}
PATH=${PATH#:}
PATH=${PATH%:}
unset PYTHONHOME PYTHONPATH

say() { printf 'setup: %s\n' "$*"; }
fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

# What an earlier run recorded under the name $1; nothing if there is none.
recorded() { if [ -f "$choices" ]; then sed -n "s/^$1=//p" "$choices"; fi; }

# Prints why the Python $1 will not do; prints nothing if it will.
python_refusal() {
    command -v "$1" >/dev/null || { echo "not found" && return; }
    "$1" - <<'PYTHON' 2>&1 | tail -n 1 || true
import sys
from importlib import import_module

if not (3, 9) <= sys.version_info[:2] <= (3, 11):
    sys.exit("is Python %d.%d" % sys.version_info[:2])
for name in ("venv", "ensurepip", "ctypes", "ssl"):
    try:
        import_module(name)
    except ImportError:
        sys.exit("lacks the module %s (Debian: apt install python3-venv)" % name)
import os, sysconfig
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
    sys.exit("lacks its C headers, to build Horovod with (Debian: apt install python3-dev)")
PYTHON
}

# Sets `python`: the base interpreter, so that one reached by a shim or an activated environment will do.
find_python() {
    local candidate refusal refusals="" chosen
    local -a candidates=(python3.11 python3.10 python3.9 python3)
    chosen=${GLPILOT_PYTHON:-$(recorded python)}
    if [ -n "${GLPILOT_PYTHON:-}" ] || { [ -n "$chosen" ] && [ -z "$(python_refusal "$chosen")" ]; }; then
        candidates=("$chosen")
    fi
    for candidate in "${candidates[@]}"; do
        refusal=$(python_refusal "$candidate")
        if [ -z "$refusal" ]; then
            python=$("$candidate" -c 'import os, sys; print(os.path.realpath(sys._base_executable))')
            return
        fi
        refusals+="; $candidate: $refusal"
    done
    fail "needs Python 3.9, 3.10 or 3.11 with venv and headers (GLPILOT_PYTHON=PATH names one)$refusals"
}

require_compiler() {
    command -v "${CXX:-c++}" >/dev/null || command -v g++ >/dev/null ||
        fail "needs a C++ compiler to build Horovod, and found neither c++ nor g++ (Debian: apt install g++)"
}

# Sets `mpi` (wheel or system) and `mpi_name`; for a system MPI also `libmpi_name` and `libmpi`.
find_mpi() {
    local found
    mpi=${GLPILOT_MPI:-$(recorded mpi)}
    mpi=${mpi:-wheel}
    libmpi_name="" libmpi=""
    case $mpi in
        wheel) mpi_name="MPICH from PyPI" ;;
        system)
            found=$("$python" "$checkout/jobs/system_mpi.py") || exit 1 # it has said why
            { read -r mpi_name && read -r libmpi_name && read -r libmpi; } <<<"$found"
            ;;
        *) fail "GLPILOT_MPI=$mpi: expected wheel or system" ;;
    esac
}

choose_gpu_operations() {
    HOROVOD_GPU_OPERATIONS=${HOROVOD_GPU_OPERATIONS-$(recorded gpu_operations)}
    export HOROVOD_GPU_OPERATIONS
}

# One hash over everything that the finished .venv depends on.
compute_stamp() {
    {
        cat "$checkout"/{setup.cfg,pyproject.toml} "$checkout"/jobs/{setup.sh,smoke_test.py,system_mpi.py}
        cat "$checkout"/jobs/{build_horovod,build_mpi4py,wheel_cache}.py
        "$python" --version
        echo "$checkout|$python|$mpi|$mpi_name|$libmpi|$HOROVOD_GPU_OPERATIONS"
    } | sha256sum | cut -d ' ' -f 1
}

# Makes .venv, unless one made for the same Python, MPI and place is there.
make_venv() {
    local wanted="checkout=$checkout
python=$python
mpi=$mpi
libmpi=$libmpi
gpu_operations=$HOROVOD_GPU_OPERATIONS"
    if [ -x "$venv/bin/python" ] && [ "$(cat "$choices" 2>/dev/null)" = "$wanted" ]; then return; fi
    say "making $venv with $("$python" --version) and $mpi_name"
    "$python" -m venv --clear "$venv"
    printf '%s\n' "$wanted" >"$choices"
}

install_stack() {
    local extras=tensorboard,test,lint,build
    local -a quiet=()
    [ "$mpi" = system ] || extras=mpich,$extras
    [ -t 1 ] || quiet=(--quiet)
    say "installing the pinned stack: 2.5 GB the first time, some minutes"
    "$venv/bin/python" -m pip install --disable-pip-version-check "${quiet[@]}" --editable ".[$extras]" ||
        fail "pip could not install the stack; its lines above say why"
}

# --force-reinstall: the version number is the same whichever MPI a wheel was built for
install_wheel() {
    "$venv/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps --force-reinstall "$1"
}

# For a system MPI, mpi4py is built against it. Horovod looks for libmpi in the environment's lib folder first, so it
# must be found there.
install_mpi4py() {
    local wheel
    [ "$mpi" = system ] || return 0
    ln -sfn "$libmpi" "$venv/lib/$libmpi_name"
    wheel=$("$venv/bin/python" "$checkout/jobs/build_mpi4py.py" --cache "$cache" --mpi "$mpi_name $libmpi") ||
        fail "mpi4py could not be built"
    install_wheel "$wheel"
}

install_horovod() {
    local wheel
    wheel=$("$venv/bin/python" "$checkout/jobs/build_horovod.py" --cache "$cache") || fail "Horovod could not be built"
    install_wheel "$wheel"
}

smoke_test() {
    say "testing on two ranks"
    timeout -k 10 300 bash "$checkout/jobs/mpi.sh" 2 "$venv/bin/python" "$checkout/jobs/smoke_test.py" </dev/null ||
        fail "the smoke test failed; its lines above say why"
}

main() {
    cd "$checkout"
    # One set-up at a time in a checkout; the lock needs no file of its own. Not every system has flock.
    exec 9<"$checkout/jobs/setup.sh"
    if command -v flock >/dev/null; then flock 9 || true; fi

    find_python
    find_mpi
    choose_gpu_operations
    local wanted_stamp
    wanted_stamp=$(compute_stamp)
    if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted_stamp" ]; then
        say "$venv is up to date ($mpi_name); \`glpilot doctor\` checks it"
        return
    fi
    require_compiler
    make_venv
    rm -f "$stamp"
    install_stack
    install_mpi4py
    install_horovod
    smoke_test
    echo "$wanted_stamp" >"$stamp"
    say "done. Next: source '$venv/bin/activate' && glpilot --help"
}

main "$@"
