"""Every key of the config with its default, its limits and its meaning. Who adds a key adds it here.

The flags of `glpilot train` and the tables in README.md are made from these classes.
"""

from __future__ import annotations

from typing import Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from glpilot.app.config.checks import (
    check_depth,
    check_fanouts,
    check_heads,
    check_one_size,
    check_row_count,
    check_split,
    refuse_truth,
    spell_truth,
)

AUTO = "auto"
RowCount = Union[Literal["auto"], int]  # what it may be: check_row_count


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_truth_for_number(cls, value: Any, info: ValidationInfo) -> Any:
        annotation: Any = cls.model_fields[str(info.field_name)].annotation
        wants_number = annotation in (int, float, list[int])
        return refuse_truth(value) if wants_number else value


class SamplerConfig(Section):
    fanouts: list[int] = Field(
        [10, 10], description="neighbours sampled per node and layer, input layer first; -1 takes all"
    )
    batch_size: int = Field(1000, ge=1, description="seed nodes per rank and step, at most")

    _check_fanouts = field_validator("fanouts")(check_fanouts)


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
    def _check_heads(self) -> ModelConfig:
        check_heads(self.name, self.hidden, self.heads)
        return self


class EmbeddingConfig(Section):
    dim: int = Field(64, ge=1, description="floats per row")
    optimizer: Literal["sgd", "adagrad", "rowwise_adagrad", "adam"] = Field("adam", description="optimizer of the rows")
    lr: float = Field(0.01, gt=0, le=1000, description="learning rate of the rows")
    init_scale: float = Field(
        0.05,
        ge=0,
        le=1000,
        description="rows start uniform in ±this, unless the graph was imported with `--embeddings`",
    )
    fetch: Literal["rma", "alltoall"] = Field(
        "rma", description="how remote rows are read: one-sided MPI Get, or a two-sided exchange"
    )
    split: Literal["nodes", "dimension"] = Field(
        "nodes", description="what a rank holds of the table: the rows of its nodes, or (P3) some columns of all rows"
    )
    pipeline: bool = Field(
        False,
        description="`split: dimension`: sum up the first layer of the next batch while this one computes, from "
        "values that lack one update",
    )


class StalenessConfig(Section):
    max_steps: int = Field(
        64, ge=-1, description="a copy of a remote row is used for at most this many steps; 0: never, -1: any number"
    )
    max_missed_updates: int = Field(
        32,
        ge=-1,
        description="… and at most for the steps in which the row is expected to be updated so often; -1: any number",
    )
    buffer_rows: RowCount = Field(
        "auto",
        description="copies kept per rank; `auto`: of all remote rows that are read, at most three times as many "
        "as the rank owns",
    )
    buffer_bytes: int = Field(0, ge=0, description="the same in bytes; 0: go by `buffer_rows`")
    buffer_fraction: float = Field(
        0, ge=0, le=1, description="the same as a share of all rows of the graph; 0: go by `buffer_rows`"
    )
    prefetch: Literal["auto", "true", "false"] = Field(
        "auto",
        description="ask for the next step's rows while this one computes, which makes them one step old; "
        "`auto`: where the model computes on a GPU, for MPI needs the cores in the meantime",
    )

    _spell_truth = field_validator("prefetch", mode="before")(spell_truth)
    _check_row_count = field_validator("buffer_rows", mode="before")(check_row_count)

    @model_validator(mode="after")
    def _check_one_size(self) -> StalenessConfig:
        check_one_size(
            buffer_rows=self.buffer_rows, buffer_bytes=self.buffer_bytes, buffer_fraction=self.buffer_fraction
        )
        return self


class CacheConfig(Section):
    rows: RowCount = Field(
        "auto",
        description="hottest rows that every rank keeps on its device; `auto`: as many as lessen what a step "
        "moves over the network and to the GPU, by the traffic model",
    )
    bytes: int = Field(0, ge=0, description="the same in bytes, with optimizer state; 0: go by `rows`")
    fraction: float = Field(0, ge=0, le=1, description="the same as a share of all rows of the graph; 0: go by `rows`")
    hotness: Literal["auto", "presample", "analytical"] = Field(
        "auto",
        description="how often rows are used: counted in epochs sampled before training, or computed from the "
        "graph's structure; `auto`: counted where that takes at most 2,000 steps",
    )
    presample_epochs: int = Field(1, ge=1, description="epochs sampled before training (`presample`)")
    refresh_epochs: int = Field(
        0, ge=0, description="choose the hot rows anew every so many epochs, by what was used; 0: never"
    )
    check_replicas: bool = Field(False, description="compare all ranks' hot rows after every step; for debugging")

    _check_row_count = field_validator("rows", mode="before")(check_row_count)

    @model_validator(mode="after")
    def _check_one_size(self) -> CacheConfig:
        check_one_size(rows=self.rows, bytes=self.bytes, fraction=self.fraction)
        return self


class AggregationConfig(Section):
    window_steps: int = Field(
        8,
        ge=1,
        le=1024,
        description="a gradient of a remote row waits up to so many batches, to be summed with the "
        "next one of its row, and is sent while a batch computes; 1: it is sent at once",
    )
    on_host: bool = Field(
        True, description="the ranks of a host sum gradients of the same row before they leave the host"
    )


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
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="where the model computes; `auto`: a GPU if there is one"
    )
    threads: int = Field(
        1, ge=1, le=1024, description="torch threads per rank; sampling takes one, so that it is reproducible"
    )
    stop_after_steps: int = Field(
        0, ge=0, description="end this start after so many steps with a checkpoint and exit code 75; 0: never"
    )
    progress: Literal["auto", "bar", "lines", "none"] = Field(
        "auto",
        description="progress bar and a line per epoch; `auto`: a bar only on a terminal (mpirun hides terminals)",
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
    def _check_sections(self) -> Config:
        check_depth(self.sampler.fanouts, self.model.layers)
        check_split(self.model_dump())
        return self


def list_keys() -> list[tuple[str, Any]]:
    """All (dotted key, pydantic field) pairs, in the order of the classes."""
    sections: dict[str, Any] = {section: field.annotation for section, field in Config.model_fields.items()}
    return [
        (f"{section}.{name}", field)
        for section, annotation in sections.items()
        for name, field in annotation.model_fields.items()
    ]
