"""Where a run stands."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field


@dataclass
class Position:
    """Where a run stands.

    Attributes:
        step: steps done since the start of the run.
        epoch: epochs done; step_in_epoch: steps done of the next one, out of steps_per_epoch.
        epoch_loss_sum: of the steps done in this epoch. epoch_seconds: of whole epochs, then of this one so far.
        metrics_bytes: length of metrics.jsonl, which a resumed run cuts back to.
        hotness_epoch: epochs done when the hot rows were chosen.
    """

    step: int = 0
    epoch: int = 0
    step_in_epoch: int = 0
    steps_per_epoch: int = 0
    epoch_loss_sum: float = 0.0
    epoch_seconds: list[float] = field(default_factory=list)
    partial_epoch_seconds: float = 0.0
    metrics_bytes: int = 0
    hotness_epoch: int = 0

    def on_steps_per_epoch(self, steps_per_epoch: int) -> Position:
        """The same place where an epoch has another number of steps, as on another number of ranks."""
        if steps_per_epoch == self.steps_per_epoch:
            return self
        step_in_epoch = self.step_in_epoch * steps_per_epoch // max(1, self.steps_per_epoch)
        changed = {**asdict(self), "steps_per_epoch": steps_per_epoch, "step_in_epoch": step_in_epoch}
        changed["epoch_loss_sum"] = self.epoch_loss_sum * step_in_epoch / max(1, self.step_in_epoch)
        return Position(**changed)
