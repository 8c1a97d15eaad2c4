#!/usr/bin/env bash
# What staleness costs in accuracy: the presets, and a table over both bounds, on one graph.
#
#   bash jobs/bench/accuracy.sh graph.h5 --seeds 1,2,3         (--help lists the rest)
#
# Runs on this machine with MPICH's ranks dealt out as if each were a host of its own, so that every technique is on.
set -euo pipefail
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bash "$checkout/jobs/setup.sh"
export PATH=$checkout/.venv/bin:$PATH OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
exec python "$checkout/jobs/bench/accuracy.py" "$@"
