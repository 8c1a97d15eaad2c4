"""Run GLPilot with none of its techniques, with each alone, with all, and with all but each, in turn.

Started by ablation.sh.
"""

from __future__ import annotations

from hosts import cluster, format_results, make_parser, take_turns, write_results

OFF = {"buffer": "--staleness.max_steps 0", "window": "--aggregation.window_steps 1", "cache": "--cache.rows 0"}


def kinds_of(cache_fraction: float) -> dict[str, str]:
    """The flags of each run; the cache is on with a share of the rows, since `auto` may find that none pays."""
    on = {**dict.fromkeys(OFF, ""), "cache": f"--cache.fraction {cache_fraction}"}

    def flags(*switched_on: str) -> str:
        return "--preset glpilot " + " ".join(on[name] if name in switched_on else OFF[name] for name in OFF)

    return {
        "none": flags(),
        **{f"{name} alone": flags(name) for name in OFF},
        **{f"all but {name}": flags(*(other for other in OFF if other != name)) for name in OFF},
        "all": flags(*OFF),
        "glpilot": "--preset glpilot",
    }


def main() -> None:
    parser = make_parser("ablation.sh", __doc__.splitlines()[0])
    parser.add_argument("--cache-fraction", type=float, default=0.02, help="share of rows in the cache (default: 0.02)")
    arguments = parser.parse_args()
    with cluster(arguments):
        results = take_turns(arguments, kinds_of(arguments.cache_fraction))
    print(format_results(results, base="none"))
    write_results(arguments, results)


if __name__ == "__main__":
    main()
