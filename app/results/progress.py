"""What a run tells at the terminal while it goes. Rank 0 only."""

from __future__ import annotations

import sys

from tqdm import tqdm


class Progress:
    """A bar over the steps of an epoch and a line at its end, as `run.progress` says."""

    def __init__(self, setting: str):
        self._shows_bar = setting == "bar" or (setting == "auto" and sys.stderr.isatty())
        self._shows_lines = setting != "none"
        self._bar = None

    def start_epoch(self, epoch: int, num_epochs: int, done: int, num_steps: int) -> None:
        if self._shows_bar:
            self._bar = tqdm(
                total=num_steps,
                initial=done,
                desc=f"epoch {epoch}/{num_epochs}",
                unit="step",
                leave=False,
                mininterval=0.5,
                file=sys.stderr,
                dynamic_ncols=True,
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
