#!/usr/bin/env bash
# From nothing to a trained embedding: set-up, a generated graph, four parts, training and evaluation on four ranks.
#
#   bash jobs/quickstart.sh
#
# Everything it makes lies in scratch/quickstart (GLPILOT_SCRATCH names another folder) and is made anew each time.
set -euo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
num_ranks=4
mkdir -p "${GLPILOT_SCRATCH:-$checkout/scratch}/quickstart"
folder=$(cd "${GLPILOT_SCRATCH:-$checkout/scratch}/quickstart" && pwd)

bash "$checkout/jobs/setup.sh"
# shellcheck source=jobs/mpi.sh
source "$checkout/jobs/mpi.sh"
export PATH=$checkout/.venv/bin:$PATH

step() { printf '\n--- %s\n' "$1"; }

step "1. a graph of 20,000 nodes in 8 planted classes"
glpilot generate --nodes 20000 --degree 20 --classes 8 --seed 1 --force "$folder/graph.h5"

step "2. $num_ranks parts"
glpilot partition "$folder/graph.h5" --parts "$num_ranks" --force "$folder/parts"

step "3. training on $num_ranks ranks"
rm -rf "$folder/run"
run_ranks "$num_ranks" glpilot train "$folder/parts" --run "$folder/run" --train.epochs 3

step "4. evaluation on $num_ranks ranks"
run_ranks "$num_ranks" glpilot evaluate "$folder/run"

cat <<NEXT

The run lies in $folder/run: summary.json, metrics.jsonl, and checkpoints/.
Next, after \`source $checkout/.venv/bin/activate\`:
  glpilot report $folder/run
  bash jobs/mpi.sh $num_ranks glpilot export $folder/run $folder/embeddings.h5
  glpilot import --help        to start from your own edge list
NEXT
