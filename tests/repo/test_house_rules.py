"""Holds the habits of the sources: sizes, names, docstrings, what `infx --help` loads, and nothing of one machine."""

import ast
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE_LIMIT, MEDIAN_LIMIT, FUNCTION_LIMIT = 400, 150, 60
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
HEAVY = ["pandas", "matplotlib", "numpy", "pydantic"]
# Parts are joined so that this file does not match itself.
MACHINE_PATHS = [
    "/wo" + "rk/",
    r"\.\./sha" + "red",
    "/ro" + r"ot/\.",
    r"/ho" + r"me/\w+/",
    "fi" + "le:///",
    "/tm" + "p/infx/",
    "pypi.org/sim" + "ple",
    "files.python" + "hosted",
    "deb.deb" + "ian.org",
    "registry.npm" + "js",
]


def sources(*folders: str) -> dict[str, str]:
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def functions(source: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body, the docstring apart: explaining is never punished."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_modules_are_short():
    lines = {path: len(source.splitlines()) for path, source in sources("infx", "tools").items() if source}
    assert {path: n for path, n in lines.items() if n > MODULE_LIMIT} == {}
    assert statistics.median(lines.values()) < MEDIAN_LIMIT


def test_functions_are_short():
    long = [
        f"{path}:{function.lineno}: {function.name} has {length(function)} lines"
        for path, source in sources("infx", "tools").items()
        for function in functions(source)
        if length(function) > FUNCTION_LIMIT
    ]
    assert long == []


def test_no_module_is_a_drawer():
    names = {path: {*Path(path).with_suffix("").parts} for path in sources("infx", "tests", "tools", "bench")}
    assert [path for path, parts in names.items() if parts & BANNED_NAMES] == []


def undocumented(path: str, source: str) -> list[str]:
    tree = ast.parse(source)
    missing = [f"{path}:1: the module does not say what it owns"] if tree.body and not ast.get_docstring(tree) else []
    public = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    ]
    bare = [node for node in public if not ast.get_docstring(node)]
    return missing + [f"{path}:{node.lineno}: {node.name} has no docstring" for node in bare]


def test_modules_and_public_functions_have_docstrings():
    lines = [line for path, source in sources("infx", "tools").items() for line in undocumented(path, source)]
    assert "\n".join(lines) == ""


def test_a_missing_docstring_is_found():
    source = 'def shown():\n    return 1\n\ndef _inner():\n    return 1\n\ndef said():\n    """Says."""\n'
    assert undocumented("a.py", source) == [
        "a.py:1: the module does not say what it owns",
        "a.py:1: shown has no docstring",
    ]


def test_help_loads_nothing_heavy():
    if not (ROOT / "infx" / "cli" / "app.py").is_file():
        pytest.skip("infx/cli/app.py does not exist yet")
    program = (
        "import sys\nsys.argv = ['infx', '--help']\nfrom infx.cli.app import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        f"print('LOADED', *[name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout
    assert done.stdout.splitlines()[-1] == "LOADED"


def module_level_imports(source: str) -> set[str]:
    """Top-level packages loaded when the module is (nothing inside functions or ``if TYPE_CHECKING``)."""
    found: set[str] = set()

    def walk(nodes: list[ast.stmt]) -> None:
        for node in nodes:
            if isinstance(node, ast.Import):
                found.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add((node.module or "").split(".")[0])
            elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.dump(node.test):
                walk([*node.body, *node.orelse])
            elif isinstance(node, ast.Try | ast.With | ast.ClassDef):
                walk(node.body)

    walk(ast.parse(source).body)
    return found


@pytest.mark.parametrize("folder", ["schema", "cli"])
def test_light_rooms_load_no_numpy(folder):
    heavy = {path: module_level_imports(source) & set(HEAVY[:3]) for path, source in sources(f"infx/{folder}").items()}
    assert {path: names for path, names in heavy.items() if names} == {}


def test_plotting_and_tables_stay_in_report():
    for path, source in sources("infx").items():
        if not path.startswith("infx/report/"):
            names = {n.split(".")[0] for n in re.findall(r"^\s*(?:import|from) (\w[\w.]*)", source, re.MULTILINE)}
            assert not names & {"pandas", "matplotlib"}, path


def committed_files() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone: which files are committed is unknown")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_nothing_committed_names_a_machine():
    pattern = re.compile("|".join(MACHINE_PATHS).encode())
    found = [
        f"{path.relative_to(ROOT)}: {match.group().decode()}"
        for path in committed_files()
        if (match := pattern.search(path.read_bytes()))
    ]
    assert found == []


def test_no_committed_file_is_large():
    large = {str(p.relative_to(ROOT)): p.stat().st_size for p in committed_files() if p.stat().st_size > 2_000_000}
    assert large == {}


def dead_links(page: Path) -> list[str]:
    """Relative links of a Markdown page that lead nowhere."""
    links = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    return [f"{page.name}: {link}" for link in links if not (page.parent / link).exists()]


def test_links_between_pages_lead_somewhere():
    pages = [path for path in committed_files() if path.suffix == ".md" and "tests" not in path.parts]
    assert [link for page in pages for link in dead_links(page)] == []


def test_a_dead_link_is_found(tmp_path):
    page = tmp_path / "a.md"
    page.write_text("[a](a.md#x) [b](b.md) [c](https://example.org/c)", encoding="utf-8")
    assert dead_links(page) == ["a.md: b.md"]
