"""README.md cannot drift from the program: its tables, commands, settings and file names are held against the code."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest
import yaml

from glpilot.app import cli
from glpilot.app.config import docs as config_docs
from glpilot.app.config.keys import list_keys
from glpilot.app.config.load import load, validate
from glpilot.data.errors import UserError
from helpers.launch import CHECKOUT

README = (CHECKOUT / "README.md").read_text()
CONTRIBUTING = (CHECKOUT / "CONTRIBUTING.md").read_text()
PAGES = [README, CONTRIBUTING, (CHECKOUT / "jobs/bench/README.md").read_text()]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FOLDERS = ("app", "data", "jobs", "partition", "tests")


def blocks(language: str) -> list[str]:
    return [body for page in PAGES for found, body in FENCE.findall(page) if found == language]


def inline_code() -> list[str]:
    """What stands in `backticks` outside of code blocks."""
    return [code for page in PAGES for code in re.findall(r"`([^`\n]+)`", FENCE.sub("", page))]


def command_lines() -> list[str]:
    """Every line of a shell block that runs glpilot, and inline commands with options, without … or CAPITALS."""
    lines = [line for block in blocks("bash") for line in block.replace("\\\n", " ").splitlines()]
    lines += [code for code in inline_code() if " --" in code and not re.search(r"…|\b[A-Z]{2,}\b", code)]
    return [line for line in lines if "glpilot" in line.split()[:-1]]


def options_of(line: str) -> list[str]:
    words = shlex.split(line, comments=True)
    return words[words.index("glpilot") + 1 :]


def test_config_tables_are_those_of_the_code():
    assert config_docs.replace_section(README) == README, "run: python -m glpilot.app.config.docs README.md"


def test_every_config_key_is_in_the_tables():
    section = README.partition(config_docs.BEGIN)[2].partition(config_docs.END)[0]
    assert re.findall(r"^\| `([a-z_]+\.[a-z_]+)`", section, re.MULTILINE) == [key for key, _ in list_keys()]


def test_there_are_commands_to_check():
    assert len(command_lines()) > 15


@pytest.mark.parametrize("line", command_lines())
def test_command_parses(line, capsys):
    try:
        arguments = cli.build_parser().parse_args(options_of(line))
    except SystemExit as end:  # --version and --help
        assert end.code == 0, f"{line}\n{capsys.readouterr().err}"
        return
    given = {key: getattr(arguments, key, None) for key, _ in list_keys()}
    load({}, None, {key: text for key, text in given.items() if text is not None})


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_command_is_described(command):
    assert re.search(rf"^\| `glpilot {command}\b", README, re.MULTILINE)


def test_every_option_that_is_named_exists():
    """Options in the tables and the text, such as `--masks FILE`, belong to some command, or to a program besides."""
    known = {"--mpi", "--shm-size"}
    for subparser in cli.build_parser()._subparsers._group_actions[0].choices.values():
        known |= set(subparser._option_string_actions)
    known |= set(cli.build_parser()._option_string_actions)
    named = {
        option
        for code in inline_code()
        if "mpirun" not in code and "srun" not in code
        for option in re.findall(r"(?<![\w-])--[a-z][\w.-]*", code)
    }
    assert named - known == set()


def test_yaml_is_a_config():
    assert blocks("yaml")
    for block in blocks("yaml"):
        validate(yaml.safe_load(block))


def test_python_compiles():
    assert blocks("python")
    for block in blocks("python"):
        compile(block, "README.md", "exec")


def test_every_file_that_is_named_exists():
    named = {target for page in PAGES for target in re.findall(r"\]\(([^):#]+)\)", page)}
    words = [word for text in [*blocks("bash"), *inline_code()] for word in text.split()]
    named |= {word for word in words if re.fullmatch(rf"({'|'.join(FOLDERS)})/[\w./-]*", word)}
    named |= {word for word in words if re.fullmatch(r"[A-Z]+\.md|setup\.cfg|pyproject\.toml", word)}
    assert len(named) > 20
    places = [CHECKOUT, CHECKOUT / "jobs/bench"]
    assert sorted(name for name in named if not any((place / name).exists() for place in places)) == []


def tree_of_readme() -> list[str]:
    """The paths in the tree of "Where things are": a name of two to a line, indented by two below its folder."""
    (tree,) = (body for body in blocks("text") if body.startswith("app/"))
    paths: list[str] = []
    for line in tree.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        folders = [part for part in (paths[-1].split("/") if paths else []) if not part.endswith(".py")]
        paths.append("/".join([*folders[:depth], line.split()[0].rstrip("/")]))
    return paths


def test_the_tree_of_readme_is_that_of_the_checkout():
    paths = tree_of_readme()
    assert [path for path in paths if not (CHECKOUT / path).exists()] == []
    rooms = {folder.relative_to(CHECKOUT).as_posix() for folder in (CHECKOUT / "app").iterdir() if folder.is_dir()}
    rooms |= {f"app/embedding/{room}" for room in ("rows", "copies", "gradients")}
    assert {room for room in rooms if not room.endswith("__pycache__")} <= set(paths)


def test_the_page_for_contributors_is_short():
    assert len(CONTRIBUTING.splitlines()) <= 60


def run_config_docs(*arguments) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "glpilot.app.config.docs", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_check_tells_drift_and_mends_nothing(tmp_path):
    page = tmp_path / "page.md"
    drifted = README.replace("| `embedding.dim` | `64` |", "| `embedding.dim` | `63` |")
    assert drifted != README
    page.write_text(drifted)
    done = run_config_docs("--check", page)
    assert done.returncode == 1 and "config keys have changed" in done.stderr
    assert page.read_text() == drifted


def test_rewrites_only_the_section(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{config_docs.BEGIN}\nold\n{config_docs.END}\nafter\n")
    assert run_config_docs(page).returncode == 0
    assert run_config_docs("--check", page).returncode == 0
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "\nold\n" not in text
    assert config_docs.render() in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        config_docs.BEGIN,
        f"{config_docs.END}\n{config_docs.BEGIN}",
        f"{config_docs.BEGIN}\n{config_docs.END}\n{config_docs.END}",
        f"{config_docs.BEGIN}\n{config_docs.BEGIN}\n{config_docs.END}",
    ],
    ids=["none", "no end", "wrong order", "two ends", "two begins"],
)
def test_refuses_a_page_without_both_markers(text, tmp_path):
    with pytest.raises(UserError, match="once each"):
        config_docs.replace_section(text)
    (tmp_path / "page.md").write_text(text)
    assert run_config_docs(tmp_path / "page.md").returncode == 2
