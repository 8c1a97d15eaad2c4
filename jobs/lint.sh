#!/usr/bin/env bash
# Checks the whole tree: ruff's rules and format (.ruff.toml), then types with mypy (setup.cfg).
#
#   bash jobs/lint.sh            says what is wrong
#   bash jobs/lint.sh --fix      first mends what ruff can mend
set -euo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bash "$checkout/jobs/setup.sh"
cd "$checkout"
python=.venv/bin/python

if ! "$python" -c "import mypy, ruff" 2>/dev/null; then
    echo "lint: $("$python" --version) has no mypy and ruff: they need 3.10 or 3.11 (GLPILOT_PYTHON=PATH names one)" >&2
    exit 2
fi
if [ "${1:-}" = --fix ]; then
    "$python" -m ruff check --quiet --fix . || true # what is left is said below
    "$python" -m ruff format --quiet .
fi
"$python" -m ruff check .
"$python" -m ruff format --check --quiet . || {
    echo "lint: the files above are not formatted; run: bash jobs/lint.sh --fix" >&2
    exit 1
}
"$python" -m mypy
# Tests and scripts say few types; those that they do say are checked.
"$python" -m mypy --no-check-untyped-defs --no-warn-unused-ignores --disable-error-code annotation-unchecked jobs tests
