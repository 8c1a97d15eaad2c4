"""The configuration: every key with its default, its limits and its meaning.

The tables in README.md are made from these classes. A config comes from a preset, a YAML file and dotted
flags, later ones winning, and is validated once; an error names the key, what was expected and what was given.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any, List, Literal, Union

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from glpilot.data.errors import UserError


AUTO = "auto"
RowCount = Union[Literal["auto"], int]  # what it may be: _check_row_count


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth_for_number(cls, value: Any, info: ValidationInfo) -> Any:
        wants_number = cls.model_fields[info.field_name].annotation in (int, float, List[int])
        if wants_number and any(isinstance(item, bool) for item in (value if isinstance(value, list) else [value])):
            raise ValueError(f"expected a number, got {value}")
        return value


def _check_row_count(value: Any) -> Any:
    if value != AUTO and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise ValueError(f"expected auto or a whole number from 0 on, got {value!r}")
    return value


def _check_one_size(section: Section, rows_key: str, *other_keys: str) -> Section:
    """A size is given in rows, or in bytes, or as a share."""
    given = [key for key in other_keys if getattr(section, key)]
    if getattr(section, rows_key) not in ("auto", 0):
        given.insert(0, rows_key)
    if len(given) > 1:
        raise ValueError(f"expected one of {', '.join((rows_key, *other_keys))}, got {' and '.join(given)}")
    return section


class SamplerConfig(Section):
    fanouts: List[int] = Field([10, 10], description="neighbours sampled per node and layer, input layer first; -1 takes all")
    batch_size: int = Field(1000, ge=1, description="seed nodes per rank and step, at most")

    @field_validator("fanouts")
    @classmethod
    def _check_fanouts(cls, fanouts: List[int]) -> List[int]:
        if not fanouts or any(fanout != -1 and not 1 <= fanout < 2**31 for fanout in fanouts):
            raise ValueError("expected one number per layer, each at least 1, or -1 for all neighbours")
        return fanouts


class ModelConfig(Section):
    name: Literal["sage", "gat", "gcn"] = Field("sage", description="GraphSAGE (mean), GAT, or GCN")
    inputs: Literal["auto", "embeddings", "features", "both"] = Field(
        "auto", description="what enters the first layer; `auto` takes both where the graph has features"
    )
    hidden: int = Field(64, ge=1, description="width of the hidden layers (GAT: over all heads)")
    layers: int = Field(2, ge=1, description="depth; as many as `sampler.fanouts`")
    dropout: float = Field(0.5, ge=0, lt=1, description="on the input embeddings and on hidden layers")
    heads: int = Field(4, ge=1, description="attention heads (GAT)")

    @model_validator(mode="after")
    def _check_heads(self) -> "ModelConfig":
        if self.name == "gat" and self.hidden % self.heads:
            raise ValueError(f"expected hidden to be a multiple of heads, got hidden {self.hidden} and heads {self.heads}")
        return self


class EmbeddingConfig(Section):
    dim: int = Field(64, ge=1, description="floats per row")
    optimizer: Literal["sgd", "adagrad", "rowwise_adagrad", "adam"] = Field("adam", description="optimizer of the rows")
    lr: float = Field(0.01, gt=0, le=1000, description="learning rate of the rows")
    init_scale: float = Field(
        0.05, ge=0, le=1000, description="rows start uniform in ±this, unless the graph was imported with `--embeddings`"
    )
    fetch: Literal["rma", "alltoall"] = Field(
        "rma", description="how remote rows are read: one-sided MPI Get, or a two-sided exchange"
    )
    split: Literal["nodes", "dimension"] = Field(
        "nodes", description="what a rank holds of the table: the rows of its nodes, or (P3) some columns of all rows"
    )
    pipeline: bool = Field(
        False, description="`split: dimension`: sum up the first layer of the next batch while this one computes, from "
        "values that lack one update"
    )


class StalenessConfig(Section):
    max_steps: int = Field(64, ge=-1, description="a copy of a remote row is used for at most this many steps; 0: never, -1: any number")
    max_missed_updates: int = Field(
        32, ge=-1, description="… and at most for the steps in which the row is expected to be updated so often; -1: any number"
    )
    buffer_rows: RowCount = Field(
        AUTO, description="copies kept per rank; `auto`: of all remote rows that are read, at most three times as many as the rank owns"
    )
    buffer_bytes: int = Field(0, ge=0, description="the same in bytes; 0: go by `buffer_rows`")
    buffer_fraction: float = Field(0, ge=0, le=1, description="the same as a share of all rows of the graph; 0: go by `buffer_rows`")
    prefetch: Literal["auto", "true", "false"] = Field(
        AUTO, description="ask for the next step's rows while this one computes, which makes them one step old; `auto`: "
        "where the model computes on a GPU, for MPI needs the cores in the meantime"
    )

    @field_validator("prefetch", mode="before")
    @classmethod
    def _spell_truth(cls, value: Any) -> Any:
        return str(value).lower() if isinstance(value, bool) else value

    _check_row_count = field_validator("buffer_rows", mode="before")(_check_row_count)

    @model_validator(mode="after")
    def _check_one_size(self) -> "StalenessConfig":
        return _check_one_size(self, "buffer_rows", "buffer_bytes", "buffer_fraction")


class CacheConfig(Section):
    rows: RowCount = Field(
        AUTO, description="hottest rows that every rank keeps on its device; `auto`: as many as lessen what a step "
        "moves over the network and to the GPU, by the traffic model"
    )
    bytes: int = Field(0, ge=0, description="the same in bytes, with optimizer state; 0: go by `rows`")
    fraction: float = Field(0, ge=0, le=1, description="the same as a share of all rows of the graph; 0: go by `rows`")
    hotness: Literal["auto", "presample", "analytical"] = Field(
        "auto", description="how often rows are used: counted in epochs sampled before training, or computed from the "
        "graph's structure; `auto`: counted where that takes at most 2,000 steps"
    )
    presample_epochs: int = Field(1, ge=1, description="epochs sampled before training (`presample`)")
    refresh_epochs: int = Field(0, ge=0, description="choose the hot rows anew every so many epochs, by what was used; 0: never")
    check_replicas: bool = Field(False, description="compare all ranks' hot rows after every step; for debugging")

    _check_row_count = field_validator("rows", mode="before")(_check_row_count)

    @model_validator(mode="after")
    def _check_one_size(self) -> "CacheConfig":
        return _check_one_size(self, "rows", "bytes", "fraction")


class AggregationConfig(Section):
    window_steps: int = Field(
        8, ge=1, le=1024, description="a gradient of a remote row waits up to so many batches, to be summed with the next "
        "one of its row, and is sent while a batch computes; 1: it is sent at once"
    )
    on_host: bool = Field(True, description="the ranks of a host sum gradients of the same row before they leave the host")


class SyncConfig(Section):
    hot: Literal["auto", "sparse_allreduce", "dense_allreduce"] = Field(
        "auto", description="how gradients of hot rows reach every rank; `auto` takes what moves fewer bytes"
    )
    cold: Literal["auto", "alltoall", "sparse_allreduce"] = Field(
        "auto", description="how row gradients reach the rows' owners; `auto` takes what moves fewer bytes"
    )


class TrainConfig(Section):
    epochs: int = Field(10, ge=0, description="passes over the training nodes")
    lr: float = Field(0.003, gt=0, le=1000, description="learning rate of the model (Adam)")
    lr_schedule: Literal["constant", "warmup", "cosine"] = Field(
        "constant", description="for both learning rates: constant, linear warm-up, or warm-up and then cosine to 0"
    )
    warmup_steps: int = Field(0, ge=0, description="steps of linear warm-up (`warmup` and `cosine`)")
    seed: int = Field(1, ge=0, lt=2**31, description="of initial values, order, sampling and dropout")
    eval_epochs: int = Field(1, ge=0, description="validate every this many epochs; 0: only at the end")
    eval_fanouts: Literal["full", "sampler"] = Field(
        "full", description="evaluate on full neighbourhoods layer by layer, or on those that `sampler.fanouts` samples"
    )
    multilabel_decision: Literal["threshold", "known_count"] = Field(
        "threshold",
        description="several labels per node: predict those with probability over ½, or as many as the node has "
        "(the protocol of DeepWalk and its successors)",
    )
    checkpoint_steps: int = Field(0, ge=0, description="checkpoint every this many steps; 0: after each epoch")
    keep_checkpoints: int = Field(2, ge=1, description="newest checkpoints kept")


class RunConfig(Section):
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where the model computes; `auto`: a GPU if there is one")
    threads: int = Field(1, ge=1, le=1024, description="torch threads per rank; sampling takes one, so that it is reproducible")
    stop_after_steps: int = Field(
        0, ge=0, description="end this start after so many steps with a checkpoint and exit code 75; 0: never"
    )
    progress: Literal["auto", "bar", "lines", "none"] = Field(
        "auto", description="progress bar and a line per epoch; `auto`: a bar only on a terminal (mpirun hides terminals)"
    )
    tensorboard: bool = Field(False, description="also write metrics for TensorBoard into the run's folder")


class Config(Section):
    sampler: SamplerConfig = SamplerConfig()
    model: ModelConfig = ModelConfig()
    embedding: EmbeddingConfig = EmbeddingConfig()
    staleness: StalenessConfig = StalenessConfig()
    cache: CacheConfig = CacheConfig()
    aggregation: AggregationConfig = AggregationConfig()
    sync: SyncConfig = SyncConfig()
    train: TrainConfig = TrainConfig()
    run: RunConfig = RunConfig()

    @model_validator(mode="after")
    def _check_depth(self) -> "Config":
        if len(self.sampler.fanouts) != self.model.layers:
            raise ValueError(
                f"expected as many sampler.fanouts as model.layers, got {len(self.sampler.fanouts)} and {self.model.layers}"
            )
        return self

    @model_validator(mode="after")
    def _check_split(self) -> "Config":
        if self.embedding.pipeline and self.embedding.split != "dimension":
            raise ValueError("embedding.pipeline: expected embedding.split dimension, got nodes")
        if self.embedding.split == "dimension":
            wanted = {"staleness.max_steps": 0, "cache.rows": 0, "cache.bytes": 0, "cache.fraction": 0, "aggregation.window_steps": 1}
            for key, value in wanted.items():
                section, name = key.split(".")
                got = getattr(getattr(self, section), name)
                if got != value:
                    raise ValueError(
                        f"{key}: expected {value} with embedding.split dimension, which has no remote rows, got {got}; "
                        "start from --preset p3"
                    )
        return self


# A preset holds what differs from the defaults.
_SYNCHRONOUS = {"staleness": {"max_steps": 0}, "cache": {"rows": 0}, "aggregation": {"window_steps": 1}}
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "glpilot": {},
    "synchronous": _SYNCHRONOUS,
    "dgl": {**_SYNCHRONOUS, "aggregation": {"window_steps": 1, "on_host": False}, "sync": {"cold": "alltoall"}},
    "p3": {**_SYNCHRONOUS, "embedding": {"split": "dimension"}},
}
DEFAULT_PRESET = "glpilot"


def keys() -> list[tuple[str, Any]]:
    """All (dotted key, pydantic field) pairs, in the order of the classes."""
    return [
        (f"{section}.{name}", field)
        for section, section_field in Config.model_fields.items()
        for name, field in section_field.annotation.model_fields.items()
    ]


def preset(name: str) -> dict[str, Any]:
    """What a preset sets, by section."""
    return {section: dict(values) for section, values in PRESETS[name].items()}


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
        content = yaml.safe_load(Path(path).read_text())
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # values that look like dates or numbers, and are none
        raise UserError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from None
    if content is None:  # an empty file
        return {}
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected sections with keys, got {type(content).__name__}")
    return content


def dump(config: Config) -> str:
    """The config as YAML, every key resolved."""
    return yaml.safe_dump(config.model_dump(), sort_keys=False)


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


def _describe(item: dict[str, Any]) -> str:
    key = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"{key}: unknown key; `glpilot train --help` lists them all"
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] == "value_error" and item["loc"][-1:] != ("fanouts",):
        return f"{key}: {message}" if key else message
    return f"{key}: {message[0].lower()}{message[1:]}, got {item['input']!r}"
