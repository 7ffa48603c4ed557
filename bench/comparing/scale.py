"""Time and memory of `infx compare` at the size that it must hold: 200 runs of 40 points, 100 starts a side.

    python bench/comparing/scale.py [--runs 200] [--keep DIR]

Writes run folders whose results hold every metric of the table (as large as real ones), then runs the command as a
process of its own, and prints wall time and peak memory. Bounds: 10 s and 1 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from infx.schema.metrics import METRICS  # noqa: E402
from tests.fakes import run_folder  # noqa: E402

CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
LAYOUTS = (1, 2, 4, 8)


def template(parent: Path) -> Path:
    """One run folder of 40 points, each with a value of every metric, written by the real store."""
    made = run_folder.plan(tps=LAYOUTS, concurrencies=CONCURRENCIES)
    with run_folder.RunStore.create(parent, run_folder.run("template"), made) as store:
        for number, block in enumerate(made.blocks):
            id_ = f"{number + 1:03d}"
            store.start_folder(id_)
            store.write_start(run_folder.start(id_, block.id, block.server, at=60.0 * number))
            for key in block.points:
                point = made.point(key)
                figures = {**dict.fromkeys(METRICS, 1.0), **run_folder.curve(point.parallel.tp, point.concurrency)}
                store.append_visit(point, id_, run_folder.visit(figures))
    return parent / "template"


def copies(source: Path, count: int) -> list[Path]:
    """Runs like ``source``, each with an effect of its own start (0.5 %) and of its points (0.3 %); B is 5 % faster."""
    rng = np.random.default_rng(1)
    paths = []
    for number in range(count):
        target = source.parent / f"20261201T{number:06d}Z-demo-{number:06d}"
        shutil.copytree(source, target)
        run = json.loads((target / "run.json").read_text())
        (target / "run.json").write_text(json.dumps({**run, "id": target.name}))
        shared = 0.005 * rng.standard_normal() + (0.05 if number >= count // 2 else 0.0)
        for file in target.glob("points/*/*/*/result.json"):
            data = json.loads(file.read_text())
            for name, value in data["visits"][0]["metrics"].items():
                if METRICS[name].better != "neither":
                    sign = 1 if METRICS[name].better == "higher" else -1
                    value["value"] *= float(np.exp(sign * shared + 0.003 * rng.standard_normal()))
            file.write_text(json.dumps(data, indent=1))
        paths.append(target)
    return paths


def measured(words: list[str], cwd: Path) -> tuple[float, float, float, str]:
    """(wall seconds, CPU seconds, peak resident MB, output) of a command."""
    before = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(words, cwd=cwd, stdout=out, env={**os.environ, "PYTHONPATH": str(ROOT)})
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - before
        out.seek(0)
        text = out.read()
    if status != 0:
        raise SystemExit(f"{words[:4]} ended with status {status}:\n{text[-2000:]}")
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--keep", type=Path, help="Make the run folders here, or take those that are there.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        parent = options.keep or Path(temporary)
        parent.mkdir(exist_ok=True)
        paths = sorted(parent.glob("2026*")) or copies(template(parent), options.runs)
        size = max(f.stat().st_size for f in paths[0].rglob("result.json"))
        half = len(paths) // 2
        sides = [",".join(p.name for p in part) for part in (paths[:half], paths[half:])]
        words = [sys.executable, "-m", "infx.cli", "compare", *sides, "--runs", str(parent), "--json"]
        wall, cpu, peak, text = measured(words, parent)
        data = json.loads(text)
        cells = [cell for curve in data["curves"] for cell in curve["cells"]]
        verdicts = {name: sum(c["verdict"] == name for c in cells) for name in sorted({c["verdict"] for c in cells})}
        print(f"{len(paths)} runs of {len(LAYOUTS) * len(CONCURRENCIES)} points ({size / 1024:.0f} KiB a result): "
              f"{wall:.1f} s ({cpu:.1f} s of CPU), {peak:.0f} MB; "
              f"{len(cells)} cells of {len(cells[0]['first'])} starts a side: {verdicts}")


if __name__ == "__main__":
    main()
