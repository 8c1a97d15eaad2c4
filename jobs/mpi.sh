#!/usr/bin/env bash
# How ranks are started, in one place: MPICH and Open MPI spell the options differently.
#
#   bash jobs/mpi.sh 4 glpilot train parts --run runs/a
#
# or, after `source jobs/mpi.sh`:  run_ranks 4 glpilot train parts --run runs/a
#
# Ranks are never bound to cores: a rank has helper threads, and ranks of one host may outnumber its cores.

glpilot_checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Fills the array MPIRUN with the launcher and its options for $1 ranks.
choose_launcher() {
    local mpirun=$glpilot_checkout/.venv/bin/mpirun
    [ -x "$mpirun" ] || mpirun=mpirun # a system MPI
    MPIRUN=("$mpirun" -np "$1")
    case $("$mpirun" --version 2>&1) in
        *"Open MPI"* | *OpenRTE*)
            MPIRUN+=(--bind-to none --oversubscribe)
            if [ "$(id -u)" = 0 ]; then MPIRUN+=(--allow-run-as-root); fi
            ;;
        *) MPIRUN+=(-bind-to none) ;;
    esac
}

# run_ranks N COMMAND…: the command on N ranks of this machine, with the environment's programs first on PATH.
run_ranks() {
    local num_ranks=$1
    shift
    choose_launcher "$num_ranks"
    PATH=$glpilot_checkout/.venv/bin:$PATH "${MPIRUN[@]}" "$@"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    set -euo pipefail
    if [ $# -lt 2 ]; then
        echo "usage: bash jobs/mpi.sh NUM_RANKS COMMAND..." >&2
        exit 2
    fi
    choose_launcher "$1"
    shift
    # exec, so that a signal to this process reaches mpirun
    PATH=$glpilot_checkout/.venv/bin:$PATH exec "${MPIRUN[@]}" "$@"
fi
