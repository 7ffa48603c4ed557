"""Write schemas/*.json and MODELS.md from the code and the configs; with --check, exit 1 when a committed file differs.

Files of schemas/ that no kind makes any more are removed, or named by --check.
"""

from __future__ import annotations

import sys
from pathlib import Path

from models_page import page

from infx.engines import ENGINES
from infx.errors import InputError
from infx.findings import errors
from infx.schema.export import KINDS, schema, text
from infx.sources.catalog import load_catalog
from infx.sources.recipes import read_recipe, recipe_paths
from infx.sources.tree import WorkingTree

ROOT = Path(__file__).resolve().parents[1]


def wanted() -> dict[Path, str]:
    """Every file that this program owns with its text."""
    tree = WorkingTree(ROOT)
    catalog, found = load_catalog(tree)
    if errors(found):
        raise InputError("\n".join(map(str, errors(found))), where="configs/")
    homes = {name: engine.homes for name, engine in ENGINES.items()}
    made = {ROOT / "schemas" / f"{name}.json": text(schema(name, catalog, homes)) for name in KINDS}
    recipes = [recipe for path in recipe_paths(tree).values() if (recipe := read_recipe(tree, path).recipe)]
    return {**made, ROOT / "MODELS.md": page(catalog, recipes)}


def main(arguments: list[str]) -> int:
    """Write, or compare with --check."""
    files = wanted()
    stale = [path for path in sorted((ROOT / "schemas").glob("*.json")) if path not in files]
    outdated = [path for path, content in files.items()
                if not path.is_file() or path.read_text(encoding="utf-8") != content]
    check = "--check" in arguments
    for path in [*outdated, *stale]:
        print(f"{path.relative_to(ROOT)} {'is out of date' if check else 'removed' if path in stale else 'written'}")
        if not check and path in stale:
            path.unlink()
        elif not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(files[path], encoding="utf-8")
    return int(check and bool(outdated or stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
