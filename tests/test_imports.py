"""Imports point one way, few modules know MPI windows or Horovod, and nothing reads or writes pickles.

Proven from the source, so that a lazy import inside a function counts as well.
"""
from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest

import glpilot.app
import glpilot.data
import glpilot.partition

FOLDERS = {package: Path(package.__file__).parent for package in (glpilot.app, glpilot.partition, glpilot.data)}
# Each may import those after it.
LAYERS = ("app", "partition", "data")
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
            if isinstance(node, ast.Call) and node.args:
                if dotted_name(node.func).split(".")[-1] in ("import_module", "__import__"):
                    names.add(beginning_of(node.args[0]))
        return names

    def mentions(self) -> set[str]:
        """Dotted names that the code uses, such as "MPI.Win.Create"."""
        return {dotted_name(node) for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)}

    def _base_of(self, node: ast.ImportFrom) -> str:
        if node.level == 0:
            return node.module
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
    for package, folder in FOLDERS.items() for file in sorted(folder.rglob("*.py"))
]


def users_of(name: str, top_level_only: bool = False) -> set[str]:
    """Paths of the modules that import a module or something in it."""
    return {
        module.path for module in MODULES
        if any(imported == name or imported.startswith(f"{name}.") for imported in module.imports(top_level_only))
    }


def test_all_modules_were_read():
    paths = {module.path for module in MODULES}
    assert {"app/runtime/communicator.py", "app/embedding/rows/store.py", "app/models/gcn.py", "partition/build.py"} <= paths
    without_imports = {module.path for module in MODULES if not module.imports()}
    assert all(path.endswith(("__init__.py", "schema.py", "errors.py")) for path in without_imports)


@pytest.mark.parametrize("text, package, expected", [
    ("import a.b as c", "glpilot.data", {"a.b"}),
    ("from a import b, c", "glpilot.data", {"a", "a.b", "a.c"}),
    ("from . import schema", "glpilot.data", {"glpilot.data", "glpilot.data.schema"}),
    ("from ..graph import Graph", "glpilot.data.importers", {"glpilot.data.graph", "glpilot.data.graph.Graph"}),
    ("def f():\n    import a", "glpilot.data", {"a"}),
])
def test_imports_are_found(tmp_path, text, package, expected):
    file = tmp_path / "m.py"
    file.write_text(text)
    module = Module("data", tmp_path, file)
    module.package = package
    assert module.imports() == expected
    assert module.imports(top_level_only=True) == (set() if text.startswith("def") else expected)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.path)
def test_imports_point_one_way(module):
    layer = module.path.split("/")[0]
    allowed = LAYERS[LAYERS.index(layer) :]
    ours = [name for name in module.imports() | module.dynamic_imports() if name.split(".")[0] == "glpilot"]
    backwards = [name for name in ours if name.split(".")[1:2] and name.split(".")[1] not in allowed]
    assert not backwards


def test_no_module_imports_the_tests_or_the_jobs():
    assert not [module.path for module in MODULES if {"tests", "jobs", "graphs", "oracle"} & module.imports()]


def test_windows_are_used_where_memory_is_shared_only():
    users = {module.path for module in MODULES if any(name.startswith("MPI.Win") for name in module.mentions())}
    assert users == {"app/runtime/host_memory.py", "app/embedding/rows/store.py"}
    assert not users_of("mpi4py.MPI.Win")
    # so nobody names MPI otherwise
    aliases = [
        alias.asname for module in MODULES for node in ast.walk(module.tree)
        if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names
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


@pytest.mark.parametrize("blocked, names", [
    ({"mpi4py", "horovod", "dgl"}, [
        "embedding.rows.records", "embedding.rows.plan", "embedding.gradients.aggregate",
        "embedding.rows.optimizers.sparse_optimizer", "config.keys", "runtime.clock", "results.metrics",
    ]),
    ({"mpi4py", "horovod"}, ["models", "models.gnn", "models.sage", "models.gat", "models.gcn"]),
])
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
