#!/usr/bin/env bash
# Set-up, then all tests: those of one process, then those marked `mpi` on 1, 2, 3 and 4 ranks, then those of them that
# several hosts concern on ranks that MPICH treats as if they were on two hosts.
#
#   bash jobs/test.sh [PYTEST ARGUMENTS]        for example: bash jobs/test.sh -k store
#
# A stage that hangs is ended after its limit: GLPILOT_UNIT_LIMIT and GLPILOT_RANKS_LIMIT, in seconds.
# (Do not pass -m: the stages choose by the `mpi` mark.)
set -euo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=$checkout/.venv/bin/python
unit_limit=${GLPILOT_UNIT_LIMIT:-900}
ranks_limit=${GLPILOT_RANKS_LIMIT:-600}
num_slowest=20 # tests to list at the end
total_passed=0 total_failed=0 total_skipped=0
summary=()
durations=() # "SECONDS STAGE TEST" of the slowest tests of each stage

# The number before the word $2 in pytest's closing line $1; 0 if it is not there.
count() {
    local number
    number=$(grep -oE "[0-9]+ $2" <<<"$1" | head -n 1) || true
    echo "${number%% *}" | grep . || echo 0
}

# Adds up a stage: its name, exit code, and output.
record() {
    local name=$1 code=$2 output=$3 closing passed failed skipped note=""
    # pytest's closing line ends in the time: "3 passed, 1 failed in 2.10s", with or without a frame of ===
    closing=$(grep -aE '(passed|failed|errors?|skipped|deselected|no tests ran).* in [0-9.]+s' "$output" | tail -n 1) || true
    passed=$(count "$closing" passed)
    failed=$(($(count "$closing" failed) + $(count "$closing" errors?)))
    skipped=$(count "$closing" skipped)
    case $code in
        0 | 5) ;; # 5: nothing selected
        124 | 137) note=" (ended at its time limit)" ;;
        *) note=" (exit code $code)" ;;
    esac
    # A stage that broke without a verdict, or after it, has failed all the same.
    if [ -n "$note" ] && [ "$failed" = 0 ]; then failed=1; fi
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
    total_skipped=$((total_skipped + skipped))
    mapfile -t -O ${#durations[@]} durations < <(
        sed -nE "s/^([0-9.]+)s (call|setup|teardown) +/\\1 $name: \\2 of /p" "$output"
    )
    summary+=("$(printf '%-14s %4d passed, %d failed, %d skipped%s' "$name" "$passed" "$failed" "$skipped" "$note")")
}

# The slowest tests of all stages, in seconds.
print_slowest() {
    printf '\nslowest %d, in seconds\n' "$num_slowest"
    printf '%s\n' "${durations[@]}" | sort -rn | sed -n "1,${num_slowest}p"
}

# stage NAME LIMIT COMMAND…: runs, shows and records. No input: a rank that reads a terminal would be stopped.
stage() {
    local name=$1 limit=$2 output code=0
    shift 2
    output=$(mktemp)
    printf '\n--- %s\n' "$name"
    timeout -k 10 "$limit" "$@" </dev/null 2>&1 | tee "$output" || code=${PIPESTATUS[0]}
    record "$name" "$code" "$output"
    rm -f "$output"
}

main() {
    bash "$checkout/jobs/setup.sh"
    cd "$checkout"
    export PATH=$checkout/.venv/bin:$PATH PYTHONFAULTHANDLER=1
    # Ranks share the cores, and waiting in MPI spins: one thread each.
    export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

    local -a pytest=("$python" -m pytest --durations="$num_slowest" --durations-min=0.5)
    stage "1 process" "$unit_limit" "${pytest[@]}" -m "not mpi" "$@"
    local num_ranks
    for num_ranks in 1 2 3 4; do
        stage "$num_ranks rank(s)" "$ranks_limit" \
            bash "$checkout/jobs/mpi.sh" "$num_ranks" "${pytest[@]}" -m mpi "$@"
    done

    # MPICH deals the ranks of a machine out to as many hosts as this says; other MPIs ignore it.
    export MPIR_CVAR_NUM_CLIQUES=2
    for num_ranks in 2 3 4; do
        stage "$num_ranks on 2 hosts" "$ranks_limit" \
            bash "$checkout/jobs/mpi.sh" "$num_ranks" "${pytest[@]}" -m "mpi and hosts" "$@"
    done

    if [ ${#durations[@]} -gt 0 ]; then print_slowest; fi
    printf '\n'
    printf '%s\n' "${summary[@]}"
    if [ $((total_passed + total_failed)) = 0 ]; then
        echo "no test was run"
        total_failed=1
    fi
    echo "$total_passed passed, $total_failed failed, $total_skipped skipped"
    [ "$total_failed" = 0 ]
}

main "$@"
