"""A training run: load, resume, train epoch by epoch, evaluate, sum up."""
from __future__ import annotations

import math
import time
from pathlib import Path

from glpilot.app.results import checkpoint
from glpilot.app.results.checkpoint import Position
from glpilot.app.runtime.agreement import AgreedError, agreement, on_first_rank
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.config.keys import Config
from glpilot.app.graph.dataset import Dataset, load_dataset
from glpilot.app.training.evaluate import evaluate
from glpilot.app.results.hotness_report import HotnessReport
from glpilot.app.results.metrics import MetricsWriter, Progress
from glpilot.app.runtime.network import sent_bytes
from glpilot.app.training.p3 import P3Trainer
from glpilot.app.training.presample import hotness_path, load_hotness, measure_hotness, merge_hotness, save_hotness
from glpilot.app.results.run_folder import write_config
from glpilot.app.graph.seeds import SeedSchedule
from glpilot.app.results.summary import describe_staleness, format_table, summarise, write_summary
from glpilot.app.training.techniques import choose_techniques, far_rows, layout_of, needs_hotness
from glpilot.app.training.lr_schedule import scale_lr
from glpilot.app.training.step import PreparedBatch, Trainer
from glpilot.data.errors import UserError

PREEMPTED_EXIT_CODE = 75


def train(communicator: Communicator, config: Config, parts: Path, run: Path, resume: str) -> int:
    """Collective: the whole of `glpilot train`; returns the exit code.

    Args:
        resume: "auto" for the newest whole checkpoint if there is one, "none", or a checkpoint's folder.

    Raises:
        AgreedError: the parts, the config or the checkpoint do not fit.
    """
    progress = Progress(config.run.progress if communicator.rank == 0 else "none")
    folder = on_first_rank(communicator.world, lambda: _choose_checkpoint(run, resume, progress))
    dataset = load_dataset(communicator, parts)
    schedule = _make_schedule(communicator, config, dataset)
    trainer = make_trainer(communicator, config, dataset)
    position = Position()
    if folder is not None:
        position = checkpoint.load(communicator, config, dataset, trainer, folder)
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
        summary = summarise(
            communicator, dataset, trainer, position.epoch_seconds, schedule.steps_per_epoch, metrics
        )
        with agreement(communicator.world):
            if communicator.rank == 0:
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


class TrainingLoop:
    """Steps and epochs from a position to the end of training, with checkpoints on the way."""

    def __init__(
        self, communicator: Communicator, config: Config, dataset: Dataset, trainer: Trainer, schedule: SeedSchedule,
        position: Position, run: Path, writer: MetricsWriter | None, progress: Progress,
    ):
        """`writer` is that of rank 0, None on the others."""
        self._communicator = communicator
        self._config = config
        self._dataset = dataset
        self._trainer = trainer
        self._schedule = schedule
        self._position = position
        self._run = run
        self._writer = writer
        self._progress = progress
        self._num_steps_now = 0
        self._saved_step = position.step

    def run_epochs(self) -> int:
        """Collective: returns 0 when all epochs are done, or the exit code of a stop on request."""
        while self._position.epoch < self._config.train.epochs:
            if not self._run_epoch():
                self._save()
                return PREEMPTED_EXIT_CODE
            self._end_epoch()
        return 0

    def _run_epoch(self) -> bool:
        """Collective: the steps that are left of an epoch; returns whether it was finished."""
        config, position, trainer = self._config, self._position, self._trainer
        num_steps = self._schedule.steps_per_epoch
        self._progress.start_epoch(position.epoch + 1, config.train.epochs, position.step_in_epoch, num_steps)
        start = time.perf_counter() - position.partial_epoch_seconds
        self._sent_bytes_before = sent_bytes()
        trainer.clock.start()
        prepared = self._prepare(position.step_in_epoch)
        while position.step_in_epoch < num_steps:
            step = position.step_in_epoch
            # Sampled here already, so that the step can ask for its rows; the owners of the step before write meanwhile.
            next_prepared = self._prepare(step + 1) if trainer.looks_ahead and step + 1 < num_steps else None
            trainer.finish_step()
            lr_scale = scale_lr(
                config.train.lr_schedule, position.epoch * num_steps + step, config.train.warmup_steps,
                config.train.epochs * num_steps,
            )
            loss = trainer.step(prepared, next_prepared, self._schedule.num_seeds_global(step), lr_scale)
            if not math.isfinite(loss):  # the same on all ranks
                raise AgreedError(
                    f"step {position.step + 1}: the loss is {loss}; lower train.lr or embedding.lr, or go on from an "
                    "earlier checkpoint"
                )
            self._num_steps_now += 1
            self._advance(loss, time.perf_counter() - start)
            if self._num_steps_now == config.run.stop_after_steps:
                return False
            prepared = next_prepared
            if prepared is None and step + 1 < num_steps:
                prepared = self._prepare(step + 1)
            if config.train.checkpoint_steps and position.step % config.train.checkpoint_steps == 0:
                self._save()
                trainer.clock.start()
        return True

    def _prepare(self, step_in_epoch: int) -> PreparedBatch:
        """Sample a step of this epoch."""
        position = self._position
        seeds = self._schedule.seeds(position.epoch, step_in_epoch)
        step = position.step - position.step_in_epoch + step_in_epoch
        return self._trainer.sample(seeds, position.epoch, step_in_epoch, step)

    def _advance(self, loss: float, epoch_seconds: float) -> None:
        position = self._position
        position.step += 1
        position.step_in_epoch += 1
        position.epoch_loss_sum += loss
        position.partial_epoch_seconds = epoch_seconds
        if self._writer is not None:
            self._writer.write({"step": position.step, "epoch": position.epoch + 1, "loss": loss})
            self._progress.advance(loss)

    def _end_epoch(self) -> None:
        """Collective: let nothing wait, validate, report and, unless steps count, checkpoint."""
        config, position = self._config, self._position
        self._settle()
        sent = sent_bytes() - self._sent_bytes_before if self._communicator.host.Get_rank() == 0 else 0
        record = {
            "step": position.step,
            "epoch": position.epoch + 1,
            "epoch_loss": position.epoch_loss_sum / self._schedule.steps_per_epoch,
            "epoch_seconds": position.partial_epoch_seconds,
            "network_bytes": self._communicator.world.allreduce(sent),
        }
        position.epoch += 1
        position.step_in_epoch = 0
        position.epoch_loss_sum = position.partial_epoch_seconds = 0.0
        position.epoch_seconds.append(record["epoch_seconds"])
        if self._trainer.techniques.buffer_rows:
            record["staleness"] = describe_staleness(self._communicator, self._trainer)
        is_last = position.epoch == config.train.epochs
        if config.cache.refresh_epochs and position.epoch % config.cache.refresh_epochs == 0 and not is_last:
            self._refresh_hotness()
        if config.train.eval_epochs and position.epoch % config.train.eval_epochs == 0 and not is_last:
            record.update(evaluate(self._communicator, config, self._dataset, self._trainer, ("val",)))
        if self._writer is not None:
            self._writer.write(record)
            self._progress.end_epoch(_describe_epoch(record))
        if is_last or not config.train.checkpoint_steps:
            self._save()

    def _settle(self) -> None:
        """Collective: an epoch ends with nothing that waits; that takes time that belongs to it."""
        start = time.perf_counter()
        self._trainer.finish_step()
        self._trainer.settle()
        self._position.partial_epoch_seconds += time.perf_counter() - start

    def _refresh_hotness(self) -> None:
        """Collective: choose the hot rows anew, by what training has used since they were chosen."""
        trainer, position = self._trainer, self._position
        if trainer.techniques.hotness is None:
            return
        hotness = merge_hotness(self._communicator, trainer.access_counter.rates())
        position.hotness_epoch = position.epoch
        save_hotness(self._communicator, self._run, position.epoch, hotness)
        trainer.adopt(
            choose_techniques(self._communicator, self._config, self._dataset.offsets, hotness, trainer.device)
        )
        trainer.access_counter.clear()

    def _save(self) -> None:
        """Collective: a checkpoint of this position, unless there is one already."""
        if self._saved_step == self._position.step:
            return
        self._trainer.finish_step()
        self._trainer.write_back()
        if self._writer is not None:
            self._position.metrics_bytes = self._writer.flush()
        checkpoint.save(
            self._communicator, self._config, self._dataset, self._trainer, self._position, self._run
        )
        self._saved_step = self._position.step


def _adopt_techniques(
    communicator: Communicator, config: Config, dataset: Dataset, schedule: SeedSchedule, trainer: Trainer,
    position: Position, run: Path, folder: Path | None, progress: Progress,
) -> None:
    """Collective: measure hotness, or read what the run has measured, choose the techniques, and go on with what waits
    in the checkpoint `folder`.
    """
    if trainer.inputs.embeddings is None:
        return
    hotness = None
    if needs_hotness(communicator, config, trainer.device):
        if folder is not None:
            hotness = load_hotness(communicator, run, position.hotness_epoch, dataset.book.num_nodes)
        if hotness is None:
            hotness, method = measure_hotness(communicator, config, dataset, schedule)
            save_hotness(communicator, run, position.hotness_epoch, hotness)
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
    waits_on = folder is not None and checkpoint.can_load_waiting(communicator, dataset, techniques, folder)
    if folder is not None and not waits_on:
        checkpoint.settle_waiting(communicator, trainer, folder)
    trainer.adopt(techniques)
    if waits_on:
        checkpoint.load_waiting(communicator, trainer, folder)


def _make_schedule(communicator: Communicator, config: Config, dataset: Dataset) -> SeedSchedule:
    train_nids = dataset.nids_of(dataset.nodes.train_mask)
    num_seeds_by_rank = communicator.world.allgather(len(train_nids))
    if not sum(num_seeds_by_rank):
        raise AgreedError(f"{dataset.folder}: no node is in the training split; import the graph with --labels and --split")
    return SeedSchedule(
        train_nids, num_seeds_by_rank, config.sampler.batch_size, config.train.seed, communicator.rank
    )


def _choose_checkpoint(run: Path, resume: str, progress: Progress) -> Path | None:
    """The checkpoint that `resume` names, None to start afresh."""
    if resume == "auto":
        folder, rejected = checkpoint.newest(run)
        for line in rejected:
            progress.say(f"rejected {line}")
        return folder
    if resume != "none":
        checkpoint.verify(Path(resume))
        return Path(resume)
    if checkpoint.list_checkpoints(run / "checkpoints"):
        raise UserError(f"--run {run}: holds checkpoints already; go on with --resume auto, or choose another name")
    return None


def _describe_epoch(record: dict) -> str:
    parts = [f"epoch {record['epoch']}", f"loss {record['epoch_loss']:.4f}", f"{record['epoch_seconds']:.2f} s"]
    parts += [f"{name.replace('_', ' ')} {value:.4f}" for name, value in record.items() if name.startswith("val_")]
    return "  ".join(parts)
