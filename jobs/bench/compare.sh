#!/usr/bin/env bash
# GLPilot beside DGL's own distributed trainer: same graph, same parts, same hosts, taking turns in one sitting.
#
#   bash jobs/bench/compare.sh --hosts 2 --rate 1gbit        (as root; --help lists the rest)
#
# Brings up hosts with jobs/cluster/local_cluster.sh, one rank each, and prints epoch times and their ratios.
set -euo pipefail
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bash "$checkout/jobs/setup.sh"
export PATH=$checkout/.venv/bin:$PATH
exec python "$checkout/jobs/bench/compare.py" "$@"
