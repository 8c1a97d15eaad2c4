"""Run DGL's distributed trainer and GLPilot, synchronous and with all its techniques, in turn, and compare their
epochs.

Started by compare.sh.
"""

from __future__ import annotations

from hosts import cluster, format_results, make_parser, take_turns, write_results

KINDS = {"dgl": "", "synchronous": "--preset synchronous", "glpilot": "--preset glpilot"}


def main() -> None:
    parser = make_parser("compare.sh", __doc__.splitlines()[0])
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"which to run, of these (default: {','.join(KINDS)})")
    arguments = parser.parse_args()
    names = arguments.kinds.split(",")
    if not set(names) <= set(KINDS):
        parser.error(f"--kinds {arguments.kinds}: expected some of {','.join(KINDS)}")
    with cluster(arguments):
        results = take_turns(arguments, {name: KINDS[name] for name in names})
    print(format_results(results, base=names[0]))
    write_results(arguments, results)


if __name__ == "__main__":
    main()
