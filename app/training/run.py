"""A training run: load, resume, train epoch by epoch, evaluate, sum up."""

from __future__ import annotations

from pathlib import Path

from glpilot.app.config.keys import Config
from glpilot.app.graph.dataset import Dataset, load_dataset
from glpilot.app.graph.seeds import SeedSchedule
from glpilot.app.results.checkpoint.folders import choose_to_resume
from glpilot.app.results.checkpoint.position import Position
from glpilot.app.results.config_file import write_config
from glpilot.app.results.hotness_file import hotness_path, load_access_rates, save_access_rates
from glpilot.app.results.hotness_report import HotnessReport
from glpilot.app.results.metrics import MetricsWriter
from glpilot.app.results.progress import Progress
from glpilot.app.results.summary import Cost, format_table, summarise, write_summary
from glpilot.app.runtime.agreement import AgreedError, agreement, on_first_rank
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.training import restore
from glpilot.app.training.evaluate import evaluate
from glpilot.app.training.loop import TrainingLoop
from glpilot.app.training.p3.step import P3Trainer
from glpilot.app.training.presample import measure_hotness, merge_hotness
from glpilot.app.training.step import Trainer
from glpilot.app.training.technique_choice import choose_techniques, far_rows, layout_of, needs_hotness


def train(communicator: Communicator, config: Config, parts: Path, run: Path, resume: str) -> int:
    """Collective: the whole of `glpilot train`; returns the exit code.

    Args:
        resume: "auto" for the newest whole checkpoint if there is one, "none", or a checkpoint's folder.

    Raises:
        AgreedError: the parts, the config or the checkpoint do not fit.
    """
    progress = Progress(config.run.progress if communicator.rank == 0 else "none")
    folder = on_first_rank(communicator.world, lambda: choose_to_resume(run, resume, progress.say))
    dataset = load_dataset(communicator, parts)
    schedule = _make_schedule(communicator, config, dataset)
    trainer = make_trainer(communicator, config, dataset)
    position = Position()
    if folder is not None:
        position = restore.load(communicator, config, dataset, trainer, folder)
        progress.say(f"resumed from {folder}: {position.epoch} epochs and {position.step_in_epoch} steps done")
    position = position.on_steps_per_epoch(schedule.steps_per_epoch)
    writer = None
    with agreement(communicator.world):
        if communicator.rank == 0:
            write_config(run, config, parts)
            writer = MetricsWriter(run, position.metrics_bytes, config.run.tensorboard)
    _adopt_techniques(communicator, config, dataset, schedule, trainer, position, run, folder, progress)
    loop = TrainingLoop(communicator, config, dataset, trainer, schedule, position, run, writer, progress)
    exit_code = loop.run_epochs()
    if exit_code == 0:
        metrics = evaluate(communicator, config, dataset, trainer, ("val", "test"))
        cost = Cost(trainer.counters, trainer.clock.seconds)
        if trainer.table is not None:
            cost = Cost(trainer.counters, trainer.clock.seconds, len(trainer.table.cache), trainer.table.staleness)
        summary = summarise(
            communicator, dataset.book.num_parts, position.epoch_seconds, schedule.steps_per_epoch, metrics, cost
        )
        with agreement(communicator.world):
            if writer is not None:
                writer.write({"step": position.step, "epoch": position.epoch, **metrics})
                write_summary(run, summary)
                progress.say(format_table(summary))
    if writer is not None:
        writer.flush()
        writer.close()
    trainer.free()
    dataset.free()
    return exit_code


def make_trainer(communicator: Communicator, config: Config, dataset: Dataset) -> Trainer:
    """Collective: the trainer for how the table is split."""
    kind = P3Trainer if config.embedding.split == "dimension" else Trainer
    return kind(communicator, config, dataset)


def _adopt_techniques(
    communicator: Communicator,
    config: Config,
    dataset: Dataset,
    schedule: SeedSchedule,
    trainer: Trainer,
    position: Position,
    run: Path,
    folder: Path | None,
    progress: Progress,
) -> None:
    """Collective: measure hotness, or read what the run has measured, choose the techniques, and go on with what waits
    in the checkpoint `folder`.
    """
    if trainer.table is None:
        return
    hotness = None
    if needs_hotness(communicator, config, trainer.device):
        if folder is not None:
            rates = load_access_rates(communicator, run, position.hotness_epoch, dataset.book.num_nodes)
            hotness = merge_hotness(communicator, rates) if rates is not None else None
        if hotness is None:
            hotness, method = measure_hotness(communicator, config, dataset, schedule)
            save_access_rates(communicator, run, position.hotness_epoch, hotness.access_rates)
            report = HotnessReport(
                communicator, hotness, far_rows(communicator, dataset.offsets), layout_of(communicator, config)
            )
            with agreement(communicator.world):
                if communicator.rank == 0:
                    report.write(hotness_path(run, position.hotness_epoch, 0).parent)
            progress.say(report.line(method))
    techniques = choose_techniques(communicator, config, dataset.offsets, hotness, trainer.device)
    for line in techniques.report:
        progress.say(line)
    if folder is None:
        trainer.adopt(techniques)
    elif restore.can_load_waiting(communicator, dataset, techniques, folder):
        trainer.adopt(techniques)
        restore.load_waiting(communicator, trainer, folder)
    else:
        restore.settle_waiting(communicator, trainer, folder)
        trainer.adopt(techniques)


def _make_schedule(communicator: Communicator, config: Config, dataset: Dataset) -> SeedSchedule:
    train_nids = dataset.nids_of(dataset.nodes.train_mask)
    num_seeds_by_rank = communicator.world.allgather(len(train_nids))
    if not sum(num_seeds_by_rank):
        raise AgreedError(
            f"{dataset.folder}: no node is in the training split; import the graph with --labels and --split"
        )
    return SeedSchedule(train_nids, num_seeds_by_rank, config.sampler.batch_size, config.train.seed, communicator.rank)
