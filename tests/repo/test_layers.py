"""Holds the floors of layers.toml: imports only go down, on one floor without circles, and edges stay at the edge.

Also that the tests' oracle and the product share no code: each would otherwise confirm the other's mistakes.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "infx"
LAYERS = tomllib.loads(Path(__file__).with_name("layers.toml").read_text(encoding="utf-8"))
FLOOR = {room: number for number, floor in enumerate(LAYERS["floor"]) for room in floor["rooms"]}


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(source: str, module: str, is_package: bool) -> Iterator[tuple[str, int]]:
    """Every module that ``source`` may load, with the line: absolute names, at any depth."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                keep = len(parts) - node.level + (1 if is_package else 0)
                base = ".".join([*parts[:keep], *([node.module] if node.module else [])])
            # `from infx import schema` loads infx.schema: each name may be a module
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "infx" and len(parts) > 1 else None


def wrong_imports(files: dict[str, str]) -> list[str]:
    """What breaks the floors, for ``files`` (path inside the repository → source)."""
    wrong, sideways = [], set()
    for path, source in files.items():
        module = module_name(ROOT / path, PACKAGE)
        here = room_of(module)
        if here is None:
            continue
        if here not in FLOOR:
            wrong.append(f"{path}: room {here!r} is not in tests/repo/layers.toml")
            continue
        for target, line in imports_of(source, module, path.endswith("__init__.py")):
            there = room_of(target)
            if there is None or there == here or there == "__version__":
                continue
            banned = [f["why"] for f in LAYERS["forbidden"] if (f["from"], f["to"]) == (here, there)]
            if there not in FLOOR:
                wrong.append(f"{path}:{line}: {target}: room {there!r} is not in tests/repo/layers.toml")
            elif banned:
                wrong.append(f"{path}:{line}: {here} may not import {there}: {banned[0]}")
            elif FLOOR[there] > FLOOR[here]:
                wrong.append(f"{path}:{line}: {here} (floor {FLOOR[here]}) imports {there} (floor {FLOOR[there]})")
            elif FLOOR[there] == FLOOR[here]:
                sideways.add((here, there))
    circle = find_circle(sideways)
    return wrong + ([f"rooms of one floor import each other in a circle: {' → '.join(circle)}"] if circle else [])


def find_circle(edges: set[tuple[str, str]]) -> list[str]:
    def walk(room: str, path: tuple[str, ...]) -> list[str]:
        if room in path:
            return [*path[path.index(room) :], room]
        return next((found for a, b in sorted(edges) if a == room and (found := walk(b, (*path, room)))), [])

    return next((found for start in sorted({a for a, _ in edges}) if (found := walk(start, ()))), [])


def package_files() -> dict[str, str]:
    return {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in sorted(PACKAGE.rglob("*.py"))}


def test_imports_only_go_down():
    assert wrong_imports(package_files()) == []


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"infx/schema/a.py": "def f():\n    from infx.plan import merge"}, "schema (floor 0) imports plan (floor 2)"),
        ({"infx/schema/a.py": "from ..plan import merge"}, "schema (floor 0) imports plan (floor 2)"),
        ({"infx/schema/__init__.py": "from .. import plan"}, "schema (floor 0) imports plan (floor 2)"),
        ({"infx/plan/a.py": "from infx import cli"}, "plan (floor 2) imports cli (floor 6)"),
        ({"infx/simulator/a.py": "import infx.engines.vllm"}, "simulator may not import engines"),
        ({"infx/extras/a.py": ""}, "room 'extras' is not in"),
        (
            {"infx/run/a.py": "import infx.report", "infx/report/a.py": "if 1:\n    import infx.run.b"},
            "circle: report → run → report",
        ),
    ],
)
def test_a_wrong_import_is_found(files, found):
    wrong = wrong_imports(files)
    assert len(wrong) == 1
    assert found in wrong[0]


@pytest.mark.parametrize(
    "files",
    [
        {"infx/cli/a.py": "import infx.schema.recipe, infx.run"},
        {"infx/run/a.py": "import infx.report", "infx/report/a.py": "import infx.compare"},
        {"infx/schema/a.py": "from . import strict\nfrom .strict import Strict\nimport numpy.typing"},
    ],
)
def test_a_right_import_is_let_through(files):
    assert wrong_imports(files) == []


def edge_breaches(path: str, source: str) -> list[str]:
    """Uses of disk, network, processes or clock in a module that is no edge."""
    edges = LAYERS["edges"]
    module = module_name(ROOT / path, PACKAGE).removeprefix("infx.")
    if any(module == edge or module.startswith(f"{edge}.") for edge in edges["modules"]):
        return []
    found = []
    for target, line in imports_of(source, f"infx.{module}", path.endswith("__init__.py")):
        if any(target == name or target.startswith(f"{name}.") for name in edges["imports"]):
            found.append(f"{path}:{line}: imports {target}, but is no edge (tests/repo/layers.toml, [edges])")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in edges["calls"]:
            found.append(f"{path}:{node.lineno}: calls {node.func.id}(), but is no edge")
    return found


def test_only_edges_touch_the_world():
    assert [breach for path, source in package_files().items() for breach in edge_breaches(path, source)] == []


def test_an_edge_breach_is_found():
    source = "import time\nfrom http import client\ndef f():\n    from subprocess import run\n    return open('x')"
    assert len(edge_breaches("infx/plan/a.py", source)) == 4
    assert edge_breaches("infx/run/a.py", source) == []
    assert edge_breaches("infx/results/store.py", source) == []
    assert len(edge_breaches("infx/results/index.py", source)) == 4


def foreign_to_oracle(path: str, source: str, siblings: set[str]) -> list[str]:
    """Imports of an oracle's file that are neither the standard library nor the oracle's own."""
    return [
        f"{path}:{line}: the oracle imports {target}"
        for target, line in imports_of(source, Path(path).stem, is_package=False)
        if target.split(".")[0] not in sys.stdlib_module_names | siblings
    ]


def test_the_oracle_knows_only_the_standard_library():
    files = sorted((ROOT / "tests" / "oracle").rglob("*.py"))
    siblings = {path.stem for path in files}
    assert [w for p in files for w in foreign_to_oracle(str(p), p.read_text(encoding="utf-8"), siblings)] == []


def test_a_foreign_import_of_the_oracle_is_found():
    source = "import socket, script\ndef f():\n    from infx.schema import metrics\n    import numpy"
    assert foreign_to_oracle("oracle.py", source, {"script"}) == [
        "oracle.py:3: the oracle imports infx.schema.metrics",
        "oracle.py:4: the oracle imports numpy",
    ]


def test_the_product_knows_nothing_of_the_tests():
    for path, source in package_files().items():
        loaded = {target.split(".")[0] for target, _ in imports_of(source, module_name(ROOT / path, PACKAGE), False)}
        assert not loaded & {"tests", "oracle", "pytest", "hypothesis"}, path
        assert "tests/oracle" not in source, path
