"""config.yaml in a run's folder: every key resolved, and the parts that the run trains on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from glpilot.app.config.keys import Config
from glpilot.app.config.load import dump, read_yaml
from glpilot.data.errors import UserError
from glpilot.data.hdf5 import replace_atomically

PARTS_KEY = "parts"


def write_config(run: Path, config: Config, parts: Path) -> None:
    """Write runs/NAME/config.yaml: every key resolved, and the parts that the run trains on."""
    with replace_atomically(Path(run) / "config.yaml") as temporary:
        header = yaml.safe_dump({PARTS_KEY: str(Path(parts).resolve())})
        temporary.write_text(header + dump(config))


def read_config(run: Path) -> tuple[dict[str, Any], Path]:
    """The sections of a run's config.yaml, and its parts.

    Raises:
        UserError: there is no run in this folder.
    """
    path = Path(run) / "config.yaml"
    if not path.is_file():
        raise UserError(
            f"{run}: expected a run's folder with config.yaml; train one with: glpilot train PARTS --run {run}"
        )
    content = read_yaml(path)
    parts = content.pop(PARTS_KEY, None)
    if not isinstance(parts, str):
        raise UserError(f"{path}: {PARTS_KEY}: expected the path of the parts, got {parts!r}; write it there")
    for section, values in content.items():
        if not isinstance(values, dict):
            raise UserError(f"{path}: {section}: expected a section with keys, got {values!r}; mend it or train again")
    return content, Path(parts)
