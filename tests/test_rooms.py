"""Rooms import one way, few modules know MPI windows or Horovod, and nothing reads or writes pickles.

Proven from the source, so that a lazy import inside a function counts as well.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import glpilot.app
import glpilot.data
import glpilot.partition

FOLDERS = {package: Path(package.__path__[0]) for package in (glpilot.app, glpilot.partition, glpilot.data)}
# Every room, and the other rooms that it may import: only rooms that stand below it here, so there can be no cycle.
MAY_IMPORT = {
    "app/cli.py": ("app/commands", "app/runtime", "data"),
    "app/commands": (
        "app/doctor",
        "app/training",
        "app/results",
        "app/embedding/rows",
        "app/runtime",
        "app/config",
        "partition",
        "data",
    ),
    "app/doctor": ("app/runtime",),
    "app/training": (
        "app/results",
        "app/dense",
        "app/models",
        "app/embedding",
        "app/embedding/copies",
        "app/embedding/gradients",
        "app/embedding/rows",
        "app/graph",
        "app/runtime",
        "app/config",
    ),
    "app/results": (
        "app/embedding/copies",
        "app/embedding/rows",
        "app/graph",
        "app/runtime",
        "app/config",
        "data",
    ),
    "app/dense": (),
    "app/models": ("app/config",),
    "app/embedding": ("app/embedding/copies", "app/embedding/gradients", "app/embedding/rows", "app/runtime"),
    "app/embedding/copies": ("app/embedding/gradients", "app/embedding/rows"),
    "app/embedding/gradients": ("app/embedding/rows", "app/runtime"),
    "app/embedding/rows": ("app/runtime",),
    "app/graph": ("app/runtime", "partition", "data"),
    "app/runtime": ("data",),
    "app/config": ("data",),
    "app": (),
    "partition": ("data",),
    "data": (),
}
ROOMS = tuple(MAY_IMPORT)
PICKLES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
# Reads or writes pickles, whoever calls it.
PICKLING_FUNCTIONS = {"torch.load", "torch.save", "pandas.read_pickle", "pd.read_pickle"}


class Module:
    """A source file: its dotted name, and what it imports and mentions.

    Attributes:
        path: under the checkout, such as "app/embedding/rows/store.py".
    """

    def __init__(self, package: str, folder: Path, file: Path):
        relative = file.relative_to(folder)
        self.path = f"{package}/{relative.as_posix()}"
        self.tree = ast.parse(file.read_text(), str(file))
        parents = relative.parent.parts
        self.package = ".".join(("glpilot", package, *parents))

    def imports(self, top_level_only: bool = False) -> set[str]:
        """Full dotted names of imported modules, and of what is imported from them."""
        names: set[str] = set()
        for node in outside_functions(self.tree) if top_level_only else ast.walk(self.tree):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = self._base_of(node)
                names.add(base)
                names.update(f"{base}.{alias.name}" for alias in node.names)
        return names

    def dynamic_imports(self) -> set[str]:
        """Beginnings of the names given to import_module and __import__, as far as they are spelled out."""
        names = set()
        for node in ast.walk(self.tree):
            function = dotted_name(node.func) if isinstance(node, ast.Call) else ""
            if function.split(".")[-1] in ("import_module", "__import__") and isinstance(node, ast.Call) and node.args:
                names.add(beginning_of(node.args[0]))
        return names

    def mentions(self) -> set[str]:
        """Dotted names that the code uses, such as "MPI.Win.Create"."""
        return {dotted_name(node) for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)}

    def _base_of(self, node: ast.ImportFrom) -> str:
        if node.level == 0:
            return node.module or ""
        package = self.package.split(".")
        base = package[: len(package) - (node.level - 1)]
        return ".".join(base + ([node.module] if node.module else []))


def outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from outside_functions(node)


def dotted_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def beginning_of(node: ast.AST) -> str:
    """The text that an expression begins with, if it is spelled out there."""
    if isinstance(node, ast.JoinedStr):
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


MODULES = [
    Module(package.__name__.split(".")[-1], folder, file)
    for package, folder in FOLDERS.items()
    for file in sorted(folder.rglob("*.py"))
]

PATHS = {module.path for module in MODULES}
PARENTS = {parent.as_posix() for path in PATHS for parent in Path(path).parents}


def users_of(name: str, top_level_only: bool = False) -> set[str]:
    """Paths of the modules that import a module or something in it."""
    return {
        module.path
        for module in MODULES
        if any(imported == name or imported.startswith(f"{name}.") for imported in module.imports(top_level_only))
    }


def test_all_modules_were_read():
    paths = {module.path for module in MODULES}
    assert {
        "app/runtime/communicator.py",
        "app/embedding/rows/store.py",
        "app/models/gcn.py",
        "partition/build.py",
    } <= paths
    without_imports = {module.path for module in MODULES if not module.imports()}
    assert all(path.endswith(("__init__.py", "schema.py", "errors.py")) for path in without_imports)


@pytest.mark.parametrize(
    "text, package, expected",
    [
        ("import a.b as c", "glpilot.data", {"a.b"}),
        ("from a import b, c", "glpilot.data", {"a", "a.b", "a.c"}),
        ("from . import schema", "glpilot.data", {"glpilot.data", "glpilot.data.schema"}),
        ("from ..graph import Graph", "glpilot.data.importers", {"glpilot.data.graph", "glpilot.data.graph.Graph"}),
        ("def f():\n    import a", "glpilot.data", {"a"}),
    ],
)
def test_imports_are_found(tmp_path, text, package, expected):
    file = tmp_path / "m.py"
    file.write_text(text)
    module = Module("data", tmp_path, file)
    module.package = package
    assert module.imports() == expected
    assert module.imports(top_level_only=True) == (set() if text.startswith("def") else expected)


def room_of(path: str) -> str:
    """The innermost room that holds a file or folder under the checkout, such as "app/embedding/rows"."""
    return max((room for room in ROOMS if path == room or path.startswith(f"{room}/")), key=len)


def path_of(name: str) -> str:
    """Where a dotted name of ours lies: "glpilot.app.cli.main" is "app/cli.py", a folder's own names are its."""
    parts = name.split(".")[1:]
    while parts:
        folder = "/".join(parts)
        if f"{folder}.py" in PATHS or folder in PARENTS:
            return f"{folder}.py" if f"{folder}.py" in PATHS else folder
        parts.pop()
    return ""


def arrows_of(module: Module) -> dict[str, str]:
    """The other rooms that a module imports from, each with a name that it imports from there."""
    names = [name for name in module.imports() | module.dynamic_imports() if name.startswith("glpilot.")]
    arrows = {room_of(path_of(name)): name for name in names if path_of(name)}
    return {room: name for room, name in arrows.items() if room != room_of(module.path)}


def backward_arrows(module: Module) -> dict[str, str]:
    return {room: name for room, name in arrows_of(module).items() if room not in MAY_IMPORT[room_of(module.path)]}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path)
def test_rooms_import_only_what_they_may(module):
    assert backward_arrows(module) == {}


def circle_of(imported_by: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle; none if there is no circle."""
    left = {module: set(names) for module, names in imported_by.items()}
    while left:
        ends = {module for module, names in left.items() if not names & set(left)}
        if not ends:
            return sorted(left)
        for module in ends:
            del left[module]
    return []


def test_no_modules_import_each_other_in_a_circle():
    assert circle_of({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]
    assert circle_of({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
    assert circle_of({module.path: {path_of(name) for name in module.imports()} for module in MODULES}) == []


def test_no_room_may_import_one_above_it():
    for room, below in MAY_IMPORT.items():
        assert all(ROOMS.index(other) > ROOMS.index(room) for other in below), room


def test_every_permission_is_used():
    used: dict[str, set[str]] = {room: set() for room in ROOMS}
    for module in MODULES:
        used[room_of(module.path)] |= set(arrows_of(module))
    assert {room: set(below) - used[room] for room, below in MAY_IMPORT.items() if set(below) - used[room]} == {}


@pytest.mark.parametrize(
    "room, text, arrow",
    [
        (
            "app/embedding/rows",
            "from glpilot.app.embedding.copies.buffer import StalenessBuffer",
            "app/embedding/copies",
        ),
        ("app/embedding/copies", "from glpilot.app.embedding.table import LearnableTable", "app/embedding"),
        ("app/embedding/rows", "from glpilot.app.config.keys import Config", "app/config"),
        ("app/results", "def f():\n    from glpilot.app.training.state import LearnableState", "app/training"),
        ("app/results/checkpoint", "from glpilot.app.training import state", "app/training"),
        ("app/graph", "from ..embedding.rows import store", "app/embedding/rows"),
        ("app/runtime", "import glpilot.app.graph.topology", "app/graph"),
        (
            "app/training",
            "from importlib import import_module\nimport_module('glpilot.app.commands.train')",
            "app/commands",
        ),
        ("partition", "from glpilot.app.runtime.clock import StageClock", "app/runtime"),
        ("data", "from glpilot.partition import book", "partition"),
    ],
)
def test_an_arrow_back_is_found(tmp_path, room, text, arrow):
    file = tmp_path / room / "m.py"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    package, _, _ = room.partition("/")
    assert list(backward_arrows(Module(package, tmp_path / package, file))) == [arrow]


@pytest.mark.parametrize("room", [room for room in ROOMS if room != "app/cli.py"])
def test_every_room_says_what_it_is_for_and_what_it_may_import(room):
    (module,) = [module for module in MODULES if module.path == f"{room}/__init__.py"]
    text = ast.get_docstring(module.tree)
    assert text
    if room != "app":
        assert "may import" in text
        missing = [other for other in MAY_IMPORT[room] if f"{Path(other).name}/" not in text]
        assert missing == []


def test_modules_are_named_in_import_statements():
    """What is imported by a name made at run time, or reached through the bare package, no arrow would show."""
    importers = users_of("importlib.import_module")
    assert importers == {"app/cli.py", "app/doctor/packages.py", "app/doctor/mpi.py"}
    assert not users_of("importlib.util") and not users_of("runpy")
    for module in MODULES:
        calls = {dotted_name(node.func) for node in ast.walk(module.tree) if isinstance(node, ast.Call)}
        assert not calls & {"__import__", "exec", "eval"}, module.path
        statements = [node for node in ast.walk(module.tree) if isinstance(node, ast.Import)]
        names = {alias.name.split(".")[0] for node in statements for alias in node.names}
        assert "glpilot" not in names, module.path


def test_no_module_imports_the_tests_or_the_jobs():
    assert not [module.path for module in MODULES if {"tests", "jobs", "graphs", "oracle"} & module.imports()]


def test_windows_are_used_where_memory_is_shared_only():
    users = {module.path for module in MODULES if any(name.startswith("MPI.Win") for name in module.mentions())}
    assert users == {"app/runtime/host_memory.py", "app/embedding/rows/store.py"}
    assert not users_of("mpi4py.MPI.Win")
    # so nobody names MPI otherwise
    aliases = [
        alias.asname
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
        if alias.name in ("MPI", "mpi4py", "mpi4py.MPI")
    ]
    assert set(aliases) == {None}


def test_horovod_is_imported_where_ranks_start_and_gradients_travel_only():
    expected = {"app/runtime/communicator.py", "app/embedding/gradients/exchange.py", "app/dense/allreduce.py"}
    assert users_of("horovod", top_level_only=True) == expected
    assert users_of("horovod") == expected  # the doctor looks at it among the modules that are loaded
    assert not [module.path for module in MODULES if any("horovod" in name for name in module.dynamic_imports())]


def test_mpi_is_not_needed_for_data_and_partitions():
    assert not [path for path in users_of("mpi4py") if not path.startswith("app/")]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path)
def test_no_pickles(module):
    assert not {name.split(".")[0] for name in module.imports() | module.dynamic_imports()} & PICKLES
    assert not module.mentions() & PICKLING_FUNCTIONS
    assert not module.imports() & PICKLING_FUNCTIONS
    keywords = [node for node in ast.walk(module.tree) if isinstance(node, ast.keyword)]
    assert not any(node.arg == "allow_pickle" and getattr(node.value, "value", True) for node in keywords)
    assert not any(name.split(".")[-1] == "to_pickle" for name in module.mentions())


BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked}:
            raise ImportError(f"{{name}} must not be imported here")

sys.meta_path.insert(0, Blocker())
"""


def run_without(blocked: set[str], code: str) -> subprocess.CompletedProcess:
    """Run Python code in a process that cannot import the blocked packages."""
    return subprocess.run(
        [sys.executable, "-c", BLOCKER.format(blocked=blocked) + code], capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    "blocked, names",
    [
        (
            {"mpi4py", "horovod", "dgl"},
            [
                "embedding.rows.records",
                "embedding.rows.plan",
                "embedding.gradients.aggregate",
                "embedding.rows.optimizers.sparse_optimizer",
                "config.keys",
                "runtime.clock",
                "results.metrics",
            ],
        ),
        ({"mpi4py", "horovod"}, ["models.build", "models.gnn", "models.sage", "models.gat", "models.gcn"]),
    ],
)
def test_modules_that_need_no_other_rank_import_without_mpi(blocked, names):
    done = run_without(blocked, "".join(f"import glpilot.app.{name}\n" for name in names))
    assert done.returncode == 0, done.stderr


def test_the_blocker_blocks():
    done = run_without({"mpi4py"}, "import glpilot.app.runtime.communicator")
    assert done.returncode != 0 and "mpi4py must not be imported here" in done.stderr


def test_the_command_line_is_read_without_heavy_imports():
    code = "from glpilot.app.cli import build_parser\nbuild_parser().parse_args(['train', 'parts', '--run', 'r'])"
    done = run_without({"mpi4py", "horovod", "dgl", "torch", "numba"}, code)
    assert done.returncode == 0, done.stderr
