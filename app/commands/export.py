"""glpilot export: write a trained run's embeddings with the users' own node ids."""

from __future__ import annotations

import argparse
from pathlib import Path

SUMMARY = "write a run's embeddings with your own node ids, as .h5, .npy or .csv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", metavar="run", type=Path, help="folder of the run")
    parser.add_argument(
        "output",
        type=Path,
        help="file to write: .h5 (ids inside), .csv (a line per node, id first), or .npy (with NAME.ids.jsonl)",
    )
    parser.add_argument(
        "--what",
        choices=("embeddings", "outputs"),
        default="embeddings",
        help="the learnable rows, or the GNN's logits on full neighbourhoods (default: embeddings)",
    )
    parser.add_argument("--checkpoint", type=Path, help="a checkpoint's folder (default: the newest whole one)")
    parser.add_argument("--parts", type=Path, help="where the parts lie now, if they were moved")
    parser.add_argument("--force", action="store_true", help="replace the output if it exists")


def run(arguments: argparse.Namespace) -> int:
    import numpy as np

    from glpilot.app.config.load import validate
    from glpilot.app.embedding.rows.records import rows_of
    from glpilot.app.results.config_file import read_config
    from glpilot.app.results.export import check_output, write_rows
    from glpilot.app.runtime.agreement import AgreedError, on_first_rank
    from glpilot.app.runtime.device import set_num_threads
    from glpilot.app.runtime.session import session
    from glpilot.app.training.inference import infer
    from glpilot.app.training.open_run import open_run

    def resolve():
        check_output(arguments.output, arguments.force)
        content, parts = read_config(arguments.run_folder)
        return validate(content), arguments.parts or parts

    with session() as communicator:
        config, parts = on_first_rank(communicator.world, resolve)
        set_num_threads(config.run.threads)
        with open_run(communicator, config, arguments.run_folder, parts, arguments.checkpoint) as opened:
            nodes, inputs = opened.dataset.nodes, opened.state.inputs
            if arguments.what == "outputs":
                wanted = np.ones(nodes.num_nodes, bool)
                rows = infer(communicator, opened.dataset, opened.state.model, inputs, wanted, config.embedding.fetch)
            elif inputs.embeddings is None:
                raise AgreedError(
                    f"{arguments.run_folder}: was trained on features alone and has no embeddings; use --what outputs"
                )
            else:
                rows = rows_of(inputs.embeddings.records)
            write_rows(communicator, opened.dataset, rows, arguments.what, arguments.output)
            if communicator.rank == 0:
                print(
                    f"{arguments.output}: {opened.dataset.book.num_nodes} × {rows.shape[1]} {arguments.what}, "
                    f"from {opened.checkpoint}"
                )
    return 0
