"""A run's folder remembers its config and its parts; a resumed run goes on from them."""

from __future__ import annotations

import pytest

from glpilot.app.cli import build_parser
from glpilot.app.commands.train import resolve
from glpilot.app.config.load import validate
from glpilot.app.config.presets import preset
from glpilot.app.results.config_file import read_config, write_config
from glpilot.data.errors import UserError

STORED = validate({"embedding": {"dim": 32}, "train": {"epochs": 5}, "run": {"stop_after_steps": 3, "threads": 2}})


@pytest.fixture
def run(tmp_path):
    write_config(tmp_path / "run", STORED, tmp_path / "parts")
    return tmp_path / "run"


def resolved(run, *arguments, **flags):
    return resolve(build_parser().parse_args(["train", "parts", "--run", str(run), *arguments]), flags)


def test_config_and_parts_are_read_back(run):
    content, parts = read_config(run)
    assert validate(content) == STORED and parts == run.parent / "parts"


def test_a_resumed_run_has_its_own_config_but_for_the_stop(run):
    config = resolved(run, "--resume", "auto", **{"train.epochs": "8"})
    assert (config.embedding.dim, config.train.epochs, config.run.threads) == (32, 8, 2)
    assert config.run.stop_after_steps == 0


def test_a_fresh_run_has_the_defaults(run):
    assert resolved(run) == validate({})
    assert resolved(run, "--resume", "auto", "--preset", "synchronous") == validate(preset("synchronous"))
    assert resolved(run.parent / "new", "--resume", "auto") == validate({})


@pytest.mark.parametrize(
    "text, message",
    [
        ("train: {}", "parts: expected the path of the parts, got None"),
        ("parts: 3", "parts: expected the path of the parts, got 3"),
        ("parts: p\ntrain: 7", "train: expected a section with keys, got 7"),
        ("[]", "expected sections"),
        ("parts: p\ntrain: {lr: -1}", "train.lr"),
    ],
)
def test_an_edited_config_is_refused_by_name(run, text, message):
    (run / "config.yaml").write_text(text)
    with pytest.raises(UserError, match=message):
        resolved(run, "--resume", "auto")


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(UserError, match="expected a run's folder with config.yaml"):
        read_config(tmp_path)
