"""What the config's values must be beyond the type and limits of a single field.

Plain functions, which keys.py attaches to its classes. Each raises ValueError with what was expected and what was
given; pydantic puts the key before it. Those that take one value return it, as pydantic wants it from them.
"""

from __future__ import annotations

from typing import Any

# What `embedding.split: dimension` leaves no choice in, for it has no remote rows to copy, to cache or to wait for.
_WITHOUT_REMOTE_ROWS = {
    "staleness.max_steps": 0,
    "cache.rows": 0,
    "cache.bytes": 0,
    "cache.fraction": 0,
    "aggregation.window_steps": 1,
}


def refuse_truth(value: Any) -> Any:
    """A number, or a list of numbers, is not spelled true or false, though Python would count with them."""
    if any(isinstance(item, bool) for item in (value if isinstance(value, list) else [value])):
        raise ValueError(f"expected a number, got {value}")
    return value


def spell_truth(value: Any) -> Any:
    """YAML reads true and false as truth values; among names such as auto they are names again."""
    return str(value).lower() if isinstance(value, bool) else value


def check_row_count(value: Any) -> Any:
    if value != "auto" and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise ValueError(f"expected auto or a whole number from 0 on, got {value!r}")
    return value


def check_fanouts(fanouts: list[int]) -> list[int]:
    if not fanouts or any(fanout != -1 and not 1 <= fanout < 2**31 for fanout in fanouts):
        raise ValueError("expected one number per layer, each at least 1, or -1 for all neighbours")
    return fanouts


def check_one_size(**sizes: int | float | str) -> None:
    """A size is given in rows, or in bytes, or as a share; those that are not given are auto or 0."""
    given = [key for key, size in sizes.items() if size not in ("auto", 0)]
    if len(given) > 1:
        raise ValueError(f"expected one of {', '.join(sizes)}, got {' and '.join(given)}")


def check_heads(model: str, hidden: int, heads: int) -> None:
    """GAT's heads share the hidden width evenly."""
    if model == "gat" and hidden % heads:
        raise ValueError(f"expected hidden to be a multiple of heads, got hidden {hidden} and heads {heads}")


def check_depth(fanouts: list[int], layers: int) -> None:
    """Every layer of the model has a fanout of the sampler."""
    if len(fanouts) != layers:
        raise ValueError(f"expected as many sampler.fanouts as model.layers, got {len(fanouts)} and {layers}")


def check_split(content: dict[str, dict[str, Any]]) -> None:
    """What the split of the table excludes in all sections; `content` holds the values by section and name."""
    if content["embedding"]["split"] != "dimension":
        if content["embedding"]["pipeline"]:
            raise ValueError("embedding.pipeline: expected embedding.split dimension, got nodes")
        return
    for key, wanted in _WITHOUT_REMOTE_ROWS.items():
        section, name = key.split(".")
        got = content[section][name]
        if got != wanted:
            raise ValueError(
                f"{key}: expected {wanted} with embedding.split dimension, which has no remote rows, got {got}; "
                "start from --preset p3"
            )
