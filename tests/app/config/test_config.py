"""A config is merged from a preset, a YAML file and flags, and every error names the key."""

from __future__ import annotations

import pytest
import yaml

from glpilot.app.config.keys import Config, list_keys
from glpilot.app.config.load import dump, load, validate
from glpilot.app.config.presets import DEFAULT_PRESET, PRESETS, preset
from glpilot.data.errors import UserError


def load_yaml(folder, text: str, flags=None, base=None) -> Config:
    path = folder / "c.yaml"
    path.write_text(text)
    return load(base or {}, path, flags or {})


def value_of(config: Config, key: str):
    section, name = key.split(".")
    return getattr(getattr(config, section), name)


def test_defaults_are_valid():
    config = validate({})
    assert config.sampler.fanouts == [10, 10] and config.model.name == "sage" and config.train.seed == 1
    assert load(preset(DEFAULT_PRESET), None, {}) == config


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_valid(name):
    validate(preset(name))


def test_changing_what_preset_returns_does_not_change_the_preset(monkeypatch):
    monkeypatch.setitem(PRESETS, "small", {"model": {"hidden": 8}})
    preset("small")["model"]["hidden"] = 9
    assert load(preset("small"), None, {"model.heads": "2"}).model.hidden == 8
    assert preset("small") == {"model": {"hidden": 8}}


def test_load_does_not_change_what_it_starts_from(tmp_path):
    base = {"model": {"hidden": 8}}
    load_yaml(tmp_path, "model: {hidden: 16}", {"model.heads": "2"}, base)
    assert base == {"model": {"hidden": 8}}


def test_later_sources_win(tmp_path):
    base = {"model": {"hidden": 8, "heads": 2, "dropout": 0.1}, "train": {"epochs": 3}}
    config = load_yaml(tmp_path, "model: {hidden: 16, heads: 4}", {"model.hidden": "32"}, base)
    assert (config.model.hidden, config.model.heads, config.model.dropout, config.train.epochs) == (32, 4, 0.1, 3)


def test_an_empty_file_sets_nothing(tmp_path):
    assert load_yaml(tmp_path, "# all defaults\n") == Config()


@pytest.mark.parametrize(
    "key, text, expected",
    [
        ("sampler.fanouts", "10,5", [10, 5]),
        ("sampler.fanouts", "[10, 5]", [10, 5]),
        ("sampler.fanouts", "-1,-1", [-1, -1]),
        ("sampler.batch_size", "7", 7),
        ("embedding.lr", "1e-3", 0.001),
        ("embedding.lr", "1", 1.0),
        ("run.tensorboard", "true", True),
        ("run.tensorboard", "no", False),
        ("model.name", "gcn", "gcn"),
        ("model.dropout", "0", 0.0),
    ],
)
def test_flags_are_read(key, text, expected):
    value = value_of(load({}, None, {key: text}), key)
    assert value == expected and type(value) is type(expected)


def test_a_single_fanout_is_a_list():
    assert load({}, None, {"sampler.fanouts": "10", "model.layers": "1"}).sampler.fanouts == [10]


@pytest.mark.parametrize(
    "key, text",
    [
        ("sampler.fanouts", ""),
        ("sampler.fanouts", "0,1"),
        ("sampler.fanouts", "-2,1"),
        ("sampler.fanouts", "10,a"),
        ("sampler.fanouts", "10,,5"),
        ("sampler.fanouts", "1.5,2"),
        ("sampler.batch_size", "0"),
        ("sampler.batch_size", "many"),
        ("sampler.batch_size", "10.5"),
        ("sampler.batch_size", "true"),
        ("sampler.batch_size", "5,6"),
        ("model.name", "mlp"),
        ("model.name", "no"),
        ("model.name", "[gat"),
        ("model.hidden", "0"),
        ("model.layers", "0"),
        ("model.dropout", "1"),
        ("model.dropout", "-0.1"),
        ("model.dropout", "nan"),
        ("embedding.dim", "0"),
        ("embedding.lr", "0"),
        ("embedding.lr", "nan"),
        ("embedding.lr", ".nan"),
        ("embedding.lr", "inf"),
        ("embedding.lr", ".inf"),
        ("embedding.lr", ""),
        ("embedding.lr", "0,5"),
        ("embedding.lr", "true"),
        ("embedding.optimizer", "Adam"),
        ("embedding.init_scale", "-1"),
        ("sync.cold", "ring"),
        ("train.epochs", "-1"),
        ("train.epochs", "yes"),
        ("train.seed", "2147483648"),
        ("train.seed", "2024-01-01"),
        ("train.keep_checkpoints", "0"),
        ("train.lr", "!!python/object:x"),
        ("run.tensorboard", "maybe"),
        ("run.tensorboard", "2"),
        ("run.device", "gpu"),
    ],
)
def test_a_wrong_value_names_its_key(key, text):
    with pytest.raises(UserError) as caught:
        load({}, None, {key: text})
    message = str(caught.value)
    assert key in message and "\n" not in message


@pytest.mark.parametrize(
    "key, text, words",
    [
        ("sampler.batch_size", "0", ["greater than or equal to 1", "got 0"]),
        ("embedding.optimizer", "lion", ["'sgd'", "'adam'", "got 'lion'"]),
        ("sampler.fanouts", "0,1", ["at least 1", "-1", "got [0, 1]"]),
        ("embedding.lr", ".inf", ["finite", "got inf"]),
        ("train.epochs", "true", ["number", "got True"]),
        ("model.name", "!!python/object/apply:os.getcwd []", ["cannot read"]),
    ],
)
def test_a_wrong_value_says_what_was_expected_and_given(key, text, words):
    with pytest.raises(UserError) as caught:
        load({}, None, {key: text})
    assert all(word in str(caught.value) for word in words)


def test_all_wrong_keys_are_named_at_once():
    with pytest.raises(UserError, match=r"embedding\.dim: .*got 0; train\.lr: .*got -1"):
        load({}, None, {"embedding.dim": "0", "train.lr": "-1"})


@pytest.mark.parametrize(
    "flags, names",
    [
        ({"sampler.fanouts": "5"}, ["sampler.fanouts", "model.layers", "1 and 2"]),
        ({"model.layers": "3"}, ["sampler.fanouts", "model.layers", "2 and 3"]),
        ({"model.name": "gat", "model.hidden": "10", "model.heads": "4"}, ["hidden", "heads", "10", "4"]),
    ],
)
def test_keys_that_do_not_fit_each_other_are_named(flags, names):
    with pytest.raises(UserError) as caught:
        load({}, None, flags)
    assert all(name in str(caught.value) for name in names)


def test_hidden_need_not_fit_heads_without_attention():
    assert load({}, None, {"model.name": "sage", "model.hidden": "10", "model.heads": "4"}).model.hidden == 10


@pytest.mark.parametrize(
    "text, word",
    [
        ("samplers: {batch_size: 5}", "samplers"),
        ("sampler: {batchsize: 5}", "sampler.batchsize: unknown key"),
        ("batch_size: 5", "batch_size"),
        ("sampler: 5", "sampler"),
        ("sampler:", "sampler"),
        ("sampler: [batch_size, 5]", "sampler"),
        ("1: {a: 2}", "1: "),
        ("sampler: {1: 2}", "sampler.1: "),
        ("sampler: {batch_size: .nan}", "sampler.batch_size"),
        ("sampler: {fanouts: 5}", "sampler.fanouts"),
        ("sampler: {fanouts: [10, [5]]}", "sampler.fanouts"),
        ("train: {lr: .inf}", "train.lr"),
        ("- 3", "list"),
        ("[]", "list"),
        ("0", "int"),
        ("a: b: c", "not valid YAML"),
        ("\0", "not valid YAML"),
        ("x: !!python/object/apply:os.getcwd []", "not valid YAML"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path, text, word):
    with pytest.raises(UserError) as caught:
        load_yaml(tmp_path, text)
    assert word in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["2001-13-45", "0x_", "!!int abc", "9" * 5000, "[" * 3000])
def test_a_value_that_yaml_stumbles_over_is_named(text):
    with pytest.raises(UserError, match="train.lr"):
        load({}, None, {"train.lr": text})


@pytest.mark.parametrize("text", ["true,5", "9223372036854775808,5", "0,5"])
def test_fanouts_are_counts(text):
    with pytest.raises(UserError, match="sampler.fanouts"):
        load({}, None, {"sampler.fanouts": text})


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_a_file_that_cannot_be_read_is_named(tmp_path, content):
    path = tmp_path / "c.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=r"c\.yaml: (cannot be read|not valid YAML)"):
        load({}, path, {})


@pytest.mark.parametrize(
    "text, key, first, second",
    [
        ("embedding:\n  dim: 32\nembedding:\n  lr: 0.02\n", "embedding", 1, 3),
        ("embedding:\n  dim: 32\n  lr: 0.02\n  dim: 64\n", "dim", 2, 4),
        ("embedding: {dim: 32, dim: 32}", "dim", 1, 1),
        ("train:\n  lr: 1\n'train':\n  epochs: 2\n", "train", 1, 3),
        ("model:\n  name: {a: {b: 1, c: 2,\n    b: 3}}", "b", 2, 3),
        ("sampler: {fanouts: [{x: 1}, {x: 2,\n x: 3}]}", "x", 1, 2),
    ],
)
def test_a_repeated_key_is_refused_with_both_lines(tmp_path, text, key, first, second):
    with pytest.raises(UserError, match=rf"c\.yaml, line {second}: {key} stands in line {first} already") as caught:
        load_yaml(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_keys_may_stand_in_several_sections_and_be_overridden_after_a_merge(tmp_path):
    text = "train: &base {lr: 0.5}\nembedding: {<<: *base, lr: 0.25}\n"
    config = load_yaml(tmp_path, text)
    assert (config.train.lr, config.embedding.lr) == (0.5, 0.25)


@pytest.mark.parametrize("base", [{"sampler": None}, {"sampler": 5}])
def test_an_edited_base_is_checked_before_flags_are_put_into_it(base):
    with pytest.raises(UserError, match="sampler"):
        load(base, None, {"sampler.batch_size": "5"})


def test_dump_and_load_give_the_same_config(tmp_path):
    flags = {
        "sampler.fanouts": "-1,5,3",
        "model.layers": "3",
        "model.name": "gat",
        "embedding.lr": "1e-7",
        "run.tensorboard": "true",
        "train.lr_schedule": "cosine",
        "train.seed": "2147483647",
    }
    config = load({}, None, flags)
    assert config != Config()
    assert load_yaml(tmp_path, dump(config)) == config


def test_dump_holds_every_key_in_order():
    content = yaml.safe_load(dump(Config()))
    dumped = [f"{section}.{name}" for section, values in content.items() for name in values]
    assert dumped == [key for key, _ in list_keys()]


def test_every_key_has_a_meaning():
    assert all(field.description for _, field in list_keys())


def test_the_promised_keys_exist():
    promised = {
        "sampler.fanouts",
        "sampler.batch_size",
        "model.name",
        "model.hidden",
        "model.layers",
        "model.dropout",
        "model.heads",
        "embedding.dim",
        "embedding.optimizer",
        "embedding.lr",
        "sync.cold",
        "train.epochs",
        "train.lr",
        "train.seed",
        "train.checkpoint_steps",
        "run.device",
    }
    assert promised <= {key for key, _ in list_keys()}


def test_a_config_cannot_be_changed():
    with pytest.raises(ValueError):
        Config().model.hidden = 5
