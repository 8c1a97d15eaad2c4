"""What a run writes down while it goes: metrics.jsonl, TensorBoard on request, a progress bar. Rank 0 only."""
from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tqdm import tqdm

from glpilot.data.errors import UserError


class MetricsWriter:
    """Appends one JSON object per line to metrics.jsonl, and the numbers in it to TensorBoard if asked to."""

    def __init__(self, run: Path, keep_bytes: int, use_tensorboard: bool):
        """`keep_bytes` of an earlier metrics.jsonl are kept; what came after a resumed checkpoint is dropped.

        Raises:
            UserError: the file cannot be written, or TensorBoard is wanted but not installed.
        """
        path = Path(run) / "metrics.jsonl"
        try:
            self._file = open(path, "ab")
            self._file.truncate(min(keep_bytes, os.fstat(self._file.fileno()).st_size))
            self._file.seek(0, os.SEEK_END)
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from error
        self._tensorboard = _open_tensorboard(run) if use_tensorboard else None

    def write(self, record: dict) -> None:
        """Write a record; one with a "step" also goes to TensorBoard."""
        self._file.write((json.dumps(record) + "\n").encode())
        if self._tensorboard is not None:
            for name, value in record.items():
                if isinstance(value, float):
                    self._tensorboard.add_scalar(name, value, record["step"])

    def flush(self) -> int:
        """Put everything on disk and return the file's length in bytes."""
        self._file.flush()
        os.fsync(self._file.fileno())
        if self._tensorboard is not None:
            self._tensorboard.flush()
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        if self._tensorboard is not None:
            self._tensorboard.close()


class Progress:
    """A bar over the steps of an epoch and a line at its end, as `run.progress` says."""

    def __init__(self, setting: str):
        self._shows_bar = setting == "bar" or (setting == "auto" and sys.stderr.isatty())
        self._shows_lines = setting != "none"
        self._bar = None

    def start_epoch(self, epoch: int, num_epochs: int, done: int, num_steps: int) -> None:
        if self._shows_bar:
            self._bar = tqdm(
                total=num_steps, initial=done, desc=f"epoch {epoch}/{num_epochs}", unit="step", leave=False,
                mininterval=0.5, file=sys.stderr, dynamic_ncols=True,
            )

    def advance(self, loss: float) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(f"loss {loss:.4f}", refresh=False)
            self._bar.update()

    def end_epoch(self, line: str) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        self.say(line)

    def say(self, line: str) -> None:
        if self._shows_lines:
            print(line, flush=True)


def _open_tensorboard(run: Path):
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UserError("run.tensorboard: TensorBoard is not installed; run: pip install tensorboard") from None
    return SummaryWriter(log_dir=str(Path(run) / "tensorboard"))
