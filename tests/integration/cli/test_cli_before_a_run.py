"""infx schema, infx draft-table and completion as commands: output, exit codes, and what loading them costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

ROOT = Path(__file__).parents[3]


def infx(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "infx.cli", *words], cwd=cwd, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60)  # fmt: skip


def test_a_schema_is_printed_and_several_are_written(tmp_path):
    done = infx("schema", "recipe")
    Draft202012Validator.check_schema(json.loads(done.stdout))
    assert done.stdout == (ROOT / "schemas/recipe.json").read_text(encoding="utf-8")
    done = infx("schema", "configs", "runner", "-o", str(tmp_path / "out"))
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert done.returncode == 0 and len(done.stdout.splitlines()) == len(written) == 9
    for name in written:
        assert (tmp_path / "out" / name).read_bytes() == (ROOT / "schemas" / name).read_bytes()
    assert set(json.loads(infx("schema", "run", "start").stdout)) == {"run", "start"}


def test_an_unknown_schema_and_a_folder_that_cannot_be_are_refused(tmp_path):
    done = infx("schema", "recipes")
    assert (done.returncode, "perhaps you meant 'recipe'" in done.stderr) == (2, True)
    (tmp_path / "file").write_text("")
    done = infx("schema", "run", "-o", str(tmp_path / "file"))
    assert (done.returncode, "Traceback" in done.stderr) == (9, False)


def test_schemas_of_broken_configs_are_refused(tmp_path):
    for folder in ("recipes", "configs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "configs/models.yaml").write_text("x: [\n")
    done = infx("schema", "recipe", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "") and "configs/models.yaml:2:" in done.stderr


def checkpoint(folder: Path, dtype: str) -> Path:
    folder.mkdir()
    size = {"BF16": 8, "F8_E4M3": 4}[dtype]
    text = json.dumps({"mtp.0.fc.weight": {"dtype": dtype, "shape": [2, 2], "data_offsets": [0, size]}}).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(size))
    (folder / "config.json").write_text("{}")
    return folder


def test_draft_table_says_what_is_stored_and_shown(tmp_path):
    log = tmp_path / "engine.log"
    log.write_text("INFO x Loading drafter model...\nINFO x Using AITER Fp8 MoE backend out of: []\n")
    done = infx("draft-table", str(checkpoint(tmp_path / "a", "BF16")), "--engine-log", str(log), "--json")
    said = json.loads(done.stdout)
    assert done.returncode == 0 and said["findings"] == []
    [row] = said["stored"]["rows"]
    assert (row["name"], row["values"], row["count"]) == ("mtp.*.fc.weight", "BF16", 1)
    assert [(one["of"], one["name"], one["value"]) for one in said["shown"]] == [
        ("draft", "loaded", "yes"), ("draft", "MoE backend", "AITER")]
    plain = infx("draft-table", str(tmp_path / "a")).stdout
    assert "mtp.*.fc.weight  1      BF16" in plain


def test_draft_table_fails_where_the_precision_is_not_what_ships(tmp_path):
    # P33
    ours, theirs = checkpoint(tmp_path / "a", "F8_E4M3"), checkpoint(tmp_path / "b", "BF16")
    done = infx("draft-table", str(ours), "--against", str(theirs))
    assert done.returncode == 3
    assert f"{ours}:0:0: T-008 mtp.*.fc.weight is 1 × F8_E4M3, no scales found; the other checkpoint has 1 × BF16" in (
        done.stdout)
    assert infx("draft-table", str(ours), "--against", str(ours)).returncode == 0


@pytest.mark.parametrize(("words", "code", "said"), [
    (["gone"], 3, "gone:0:0: T-001"),
    (["bad.safetensors"], 3, "T-003"),
    (["a", "--engine-log", "gone.log"], 3, "gone.log"),
    (["a", "--draft", "nothing*"], 0, "T-007"),
    ([], 2, "Missing argument"),
])  # fmt: skip
def test_draft_table_of_wrong_input(words, code, said, tmp_path):
    checkpoint(tmp_path / "a", "BF16")
    (tmp_path / "bad.safetensors").write_bytes(b"<html>not found</html>" * 9)
    done = infx("draft-table", *words, cwd=tmp_path)
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("line", "offered"), [
    ("infx explain qwen38-27b-mxfp4-mi355x-vllm-8k1k-mono --only tp2/c1", ["tp2/c16", "tp2/c128"]),
    ("infx sweep --runner simu", ["simulator"]),
    ("infx ab dsv4", ["dsv41flash-fp4-mi355x-vllm-agentic-dspark"]),
    ("infx sche", ["schema"]),
])  # fmt: skip
def test_the_shell_is_offered(line, offered):
    words = line.split(" ")
    program = "import sys; sys.argv = ['infx']; from infx.cli.app import main; main()"  # the name picks the variable
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_INFX_COMPLETE": "complete_bash"}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60,
                          env={**os.environ, **asked})  # fmt: skip
    assert done.stdout.splitlines() == offered


def test_completing_a_key_loads_no_model_of_a_recipe():
    program = ("import sys\nfrom types import SimpleNamespace as S\nfrom infx.cli import complete\n"
               "assert complete.keys(S(params={}, args=[]), '')\nassert complete.runners(S(params={}, args=[]), '')\n"
               "print([name for name in ('pydantic', 'numpy', 'yaml') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr
