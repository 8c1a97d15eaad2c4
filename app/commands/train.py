"""glpilot train: train on the ranks that mpirun or horovodrun started."""

from __future__ import annotations

import argparse
from pathlib import Path

from glpilot.app.config.keys import Config, list_keys
from glpilot.app.config.load import load
from glpilot.app.config.presets import DEFAULT_PRESET, PRESETS, preset

SUMMARY = "train embeddings and a GNN on partitioned data"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("parts", type=Path, help="folder that glpilot partition wrote")
    parser.add_argument("--run", type=Path, required=True, dest="run_folder", help="folder of this run, such as runs/a")
    parser.add_argument("--config", type=Path, help="YAML file with sections and keys as below")
    parser.add_argument("--preset", choices=list(PRESETS), help="what the config starts from")
    parser.add_argument(
        "--resume",
        default="none",
        metavar="auto|none|PATH",
        help="auto: go on from the newest whole checkpoint, if there is one; or a checkpoint's folder (default: none)",
    )
    group = parser.add_argument_group(
        "config keys", "A value that begins with a minus sign needs an equals sign: --sampler.fanouts=-1,-1"
    )
    for key, field in list_keys():
        default = ",".join(map(str, field.default)) if isinstance(field.default, list) else field.default
        # argparse expands % signs in help.
        description = f"{field.description} (default: {default})".replace("%", "%%")
        group.add_argument(f"--{key}", dest=key, metavar="VALUE", help=description)


def run(arguments: argparse.Namespace) -> int:
    flags = {key: getattr(arguments, key) for key, _ in list_keys() if getattr(arguments, key) is not None}

    from glpilot.app.runtime.agreement import on_first_rank
    from glpilot.app.runtime.device import set_num_threads
    from glpilot.app.runtime.session import session
    from glpilot.app.training.run import train

    with session() as communicator:
        config = on_first_rank(communicator.world, lambda: resolve(arguments, flags))
        set_num_threads(config.run.threads)
        return train(communicator, config, arguments.parts, arguments.run_folder, arguments.resume)


def resolve(arguments: argparse.Namespace, flags: dict[str, str]) -> Config:
    """The config of the command line. A resumed run starts from its own config.yaml instead of a preset.

    Raises:
        UserError: a key or value is wrong.
    """
    own_config = arguments.run_folder / "config.yaml"
    if arguments.resume == "none" or arguments.preset is not None or not own_config.is_file():
        base = preset(arguments.preset or DEFAULT_PRESET)
    else:
        from glpilot.app.results.config_file import read_config  # here, since it needs MPI

        base, _ = read_config(arguments.run_folder)
        base.get("run", {}).pop("stop_after_steps", None)  # was meant for that start only
    return load(base, arguments.config, flags)
