"""Steps and epochs: when to train, to evaluate, to choose hot rows anew, and to write a checkpoint."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from glpilot.app.config.keys import Config
from glpilot.app.graph.dataset import Dataset
from glpilot.app.graph.seeds import SeedSchedule
from glpilot.app.results.checkpoint.position import Position
from glpilot.app.results.checkpoint.save import save
from glpilot.app.results.hotness_file import save_access_rates
from glpilot.app.results.metrics import MetricsWriter
from glpilot.app.results.progress import Progress
from glpilot.app.results.summary import describe_staleness
from glpilot.app.runtime.agreement import AgreedError
from glpilot.app.runtime.communicator import Communicator
from glpilot.app.runtime.network import sent_bytes
from glpilot.app.training.batch import PreparedBatch
from glpilot.app.training.evaluate import evaluate
from glpilot.app.training.lr_schedule import scale_lr
from glpilot.app.training.presample import merge_hotness
from glpilot.app.training.step import Trainer
from glpilot.app.training.technique_choice import choose_techniques

PREEMPTED_EXIT_CODE = 75


class TrainingLoop:
    """Steps and epochs from a position to the end of training, with checkpoints on the way."""

    def __init__(
        self,
        communicator: Communicator,
        config: Config,
        dataset: Dataset,
        trainer: Trainer,
        schedule: SeedSchedule,
        position: Position,
        run: Path,
        writer: MetricsWriter | None,
        progress: Progress,
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
        prepared: PreparedBatch | None = None
        while position.step_in_epoch < num_steps:
            step = position.step_in_epoch
            if prepared is None:
                prepared = self._prepare(step)
            # Sampled already, so that the step can ask for its rows; the owners of the step before write meanwhile.
            next_prepared = self._prepare(step + 1) if trainer.looks_ahead and step + 1 < num_steps else None
            trainer.finish_step()
            lr_scale = scale_lr(
                config.train.lr_schedule,
                position.epoch * num_steps + step,
                config.train.warmup_steps,
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
        table = self._trainer.table
        if table is not None and table.techniques.buffer_rows:
            record["staleness"] = describe_staleness(self._communicator, table.staleness)
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
        trainer, table, position = self._trainer, self._trainer.table, self._position
        if table is None or table.access_counter is None or table.techniques.hotness is None:
            return
        hotness = merge_hotness(self._communicator, table.access_counter.rates())
        position.hotness_epoch = position.epoch
        save_access_rates(self._communicator, self._run, position.epoch, hotness.access_rates)
        trainer.adopt(
            choose_techniques(self._communicator, self._config, self._dataset.offsets, hotness, trainer.device)
        )
        table.access_counter.clear()

    def _save(self) -> None:
        """Collective: a checkpoint of this position, unless there is one already."""
        if self._saved_step == self._position.step:
            return
        self._trainer.finish_step()
        self._trainer.write_back()
        if self._writer is not None:
            self._position.metrics_bytes = self._writer.flush()
        snapshot = self._trainer.snapshot()
        save(self._communicator, self._config, self._dataset, snapshot, self._position, self._run)
        self._saved_step = self._position.step


def _describe_epoch(record: dict[str, Any]) -> str:
    parts = [f"epoch {record['epoch']}", f"loss {record['epoch_loss']:.4f}", f"{record['epoch_seconds']:.2f} s"]
    parts += [f"{name.replace('_', ' ')} {value:.4f}" for name, value in record.items() if name.startswith("val_")]
    return "  ".join(parts)
