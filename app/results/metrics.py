"""What a run writes down while it goes: metrics.jsonl, and TensorBoard on request. Rank 0 only."""

from __future__ import annotations

import json
import os
from pathlib import Path

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
            self._file = open(path, "ab")  # noqa: SIM115 - `close` closes it
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


def _open_tensorboard(run: Path):
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UserError("run.tensorboard: TensorBoard is not installed; run: pip install tensorboard") from None
    return SummaryWriter(log_dir=str(Path(run) / "tensorboard"))
