"""glpilot evaluate: measure a trained run on its validation and test nodes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

SUMMARY = "evaluate a run's newest checkpoint on the validation and test nodes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", metavar="run", type=Path, help="folder of the run")
    parser.add_argument("--checkpoint", type=Path, help="a checkpoint's folder (default: the newest whole one)")
    parser.add_argument("--parts", type=Path, help="where the parts lie now, if they were moved")
    parser.add_argument(
        "--fanouts", choices=("full", "sampler"), help="neighbourhoods (default: as the run was configured)"
    )


def run(arguments: argparse.Namespace) -> int:
    from glpilot.app.config.load import validate
    from glpilot.app.results.config_file import read_config
    from glpilot.app.runtime.agreement import on_first_rank
    from glpilot.app.runtime.device import set_num_threads
    from glpilot.app.runtime.session import session
    from glpilot.app.training.evaluate import evaluate
    from glpilot.app.training.open_run import open_run

    def resolve():
        content, parts = read_config(arguments.run_folder)
        if arguments.fanouts:
            content.setdefault("train", {})["eval_fanouts"] = arguments.fanouts
        return validate(content), arguments.parts or parts

    with session() as communicator:
        config, parts = on_first_rank(communicator.world, resolve)
        set_num_threads(config.run.threads)
        with open_run(communicator, config, arguments.run_folder, parts, arguments.checkpoint) as opened:
            metrics = evaluate(communicator, config, opened.dataset, opened.state, ("val", "test"))
            if communicator.rank == 0:
                print(
                    json.dumps(
                        {"checkpoint": str(opened.checkpoint), "step": opened.position.step, **metrics}, indent=2
                    )
                )
    return 0
