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
# mpirun hides the terminal from the ranks, so whether there is one for a progress bar is seen here
progress=lines
if [ -t 2 ]; then progress=bar; fi
run_ranks "$num_ranks" glpilot train "$folder/parts" --run "$folder/run" --train.epochs 5 --run.progress "$progress"

step "4. evaluation on $num_ranks ranks"
run_ranks "$num_ranks" glpilot evaluate "$folder/run"

shown=${folder#"$checkout"/}
cat <<NEXT

The run lies in $folder/run: summary.json, metrics.jsonl, config.yaml, checkpoints/.
Next, after: cd '$checkout' && source .venv/bin/activate
  glpilot train --help      every setting; another run:
                            bash jobs/mpi.sh 2 glpilot train '$shown/parts' --run '$shown/gat' --model.name gat
  glpilot export '$shown/run' '$shown/embeddings.h5'
  glpilot import --help     to start from your own edge list
  glpilot doctor            to see this machine as GLPilot does
NEXT
