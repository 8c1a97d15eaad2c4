"""From a preset, a YAML file and dotted flags, later ones winning, to one validated Config, and back to YAML.

An error names the key, what was expected and what was given, in one line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from glpilot.app.config.keys import Config
from glpilot.data.errors import UserError


def load(base: dict[str, Any], config_path: Path | None, flags: dict[str, str]) -> Config:
    """The config of a preset (or an earlier run), a YAML file and dotted flags (text as typed), later ones winning.

    Raises:
        UserError: an unknown key, or a value that does not fit; the key is named.
    """
    content: dict[str, Any] = {}
    _merge(content, base, "config.yaml")  # an earlier run's may have been edited
    if config_path is not None:
        _merge(content, read_yaml(config_path), str(config_path))
    for key, text in flags.items():
        section, name = key.split(".")
        content.setdefault(section, {})[name] = _parse_flag(key, text)
    return validate(content)


def validate(content: dict[str, Any]) -> Config:
    """Build a Config from nested dictionaries; raises UserError with one line per wrong key."""
    try:
        return Config.model_validate(content)
    except ValidationError as error:
        raise UserError("; ".join(_describe(item) for item in error.errors())) from None


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; raises UserError if there is none."""
    try:
        content = yaml.load(Path(path).read_text(), Loader=_StrictLoader)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except _RepeatedKey as error:
        raise UserError(f"{path}, {error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # ValueError: a value that looks like a date or a number, and is none.
        raise UserError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from None
    if content is None:  # an empty file
        return {}
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected sections with keys, got {type(content).__name__}")
    return content


def dump(config: Config) -> str:
    """The config as YAML, every key resolved."""
    return yaml.safe_dump(config.model_dump(), sort_keys=False)


class _RepeatedKey(Exception):
    """A key that stands twice in one mapping."""


class _StrictLoader(yaml.SafeLoader):
    """Refuses a mapping that holds a key twice, of which PyYAML would keep the last and forget the first."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        line_of: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                line = key.start_mark.line + 1
                if key.value in line_of:
                    raise _RepeatedKey(
                        f"line {line}: {key.value} stands in line {line_of[key.value]} already; expected each key "
                        "once, so keep one of them, or put what is in both under one"
                    )
                line_of[key.value] = line
        return node


def _merge(content: dict[str, Any], update: dict[str, Any], source: str) -> None:
    for section, values in update.items():
        if not isinstance(values, dict):
            raise UserError(f"{source}: {section}: expected a section with keys, got {values!r}")
        content.setdefault(section, {}).update(values)


def _parse_flag(key: str, text: str) -> Any:
    """A flag's text as YAML would read it; 10,5 is a list."""
    if "," in text or key == "sampler.fanouts":
        text = f"[{text.strip('[]')}]"
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise UserError(f"--{key}: cannot read {text!r}") from None


def _describe(item: ErrorDetails) -> str:
    key = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"{key}: unknown key; `glpilot train --help` lists them all"
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] == "value_error" and item["loc"][-1:] != ("fanouts",):
        return f"{key}: {message}" if key else message
    return f"{key}: {message[0].lower()}{message[1:]}, got {item['input']!r}"
