"""Wrong input of each kind: exit code, message, and nothing left behind."""

from __future__ import annotations

import json

import pytest

GOOD = """image: pypi:toy==1.0
model: tiny-bf16
precision: bf16
hardware: mi355x
engine: vllm
runner: cluster:mi355x-amds
scenario: {kind: fixed-seq-len, isl: 64, osl: 16}
ladder: [{tp: 1, concurrency: [1]}]
"""
SWEEP = ("sweep", "toy", "--runner", "simulator")

RECIPES = [
    ("unknown key", ("precision", "precison"), 3, "toy.yaml:3:1: S-001", "perhaps you meant 'precision'"),
    ("tp as text", ("tp: 1", 'tp: "2"'), 3, "toy.yaml:8:15: S-003", "must be an integer"),
    ("tp as boolean", ("tp: 1", "tp: true"), 3, "toy.yaml:8:15: S-003", "must be an integer"),
    ("empty ladder", ("[{tp: 1, concurrency: [1]}]", "[]"), 3, "toy.yaml:8:9", "ladder"),
    ("empty concurrency", ("[1]}", "[]}"), 3, "toy.yaml:8:", "empty"),
    ("duplicate concurrency", ("[1]}", "[1, 1]}"), 3, "toy.yaml:8:", "duplicate concurrency 1"),
    ("zero concurrency", ("[1]}", "[0]}"), 3, "toy.yaml:8:", "greater than or equal to 1"),
    ("unknown model", ("tiny-bf16", "tiny-bf17"), 3, "toy.yaml:2:8: P-001", "perhaps you meant 'tiny-bf16'"),
    ("unknown hardware", ("hardware: mi355x", "hardware: mi455x"), 3, "toy.yaml:4:11: P-002", "mi355x"),
    ("unknown label", ("cluster:mi355x-amds", "cluster:mars"), 3, "toy.yaml:6:9: P-003", "known:"),
    ("image :latest", ("pypi:toy==1.0", "vllm/vllm-openai:latest"), 3, "toy.yaml:1:8", "can change under its name"),
    ("not YAML", ("ladder: [", "ladder: [["), 3, "toy.yaml:", "Y-001"),
    ("duplicate key", ("engine: vllm", "engine: vllm\nengine: vllm"), 3, "toy.yaml:6:1: Y-012", "keep one"),
    ("tab", ("engine: vllm", "engine:\n\tvllm"), 3, "toy.yaml:6:", "Y-007"),
]


@pytest.mark.parametrize(("change", "code", "place", "part"), [case[1:] for case in RECIPES],
                         ids=[case[0] for case in RECIPES])
def test_recipes(repository, change, code, place, part):
    assert change[0] in GOOD
    repository.write("recipes/toy.yaml", GOOD.replace(*change))
    for words in (SWEEP, ("validate", "recipes/toy.yaml")):
        done = repository.infx(*words)
        said = done.stdout + done.stderr
        assert done.returncode == code, said
        assert place in said and part.lower() in said.lower(), said
        assert "Traceback" not in said
    assert repository.runs() == []


COMMANDS = [
    ("unknown recipe", ("sweep", "toi", "--runner", "simulator"), 2, "perhaps you meant 'toy'"),
    ("unknown runner", ("sweep", "toy", "--runner", "simulater"), 2, "perhaps you meant 'simulator'"),
    ("no runner", ("sweep", "toy"), 2, "--runner simulator"),
    ("label not served", ("sweep", "toy", "--runner", "local"), 4, "does not serve the label"),
    ("placeholder", ("sweep", "qwen38-27b-mxfp4-mi355x-vllm-8k1k-mono", "--runner", "here"), 4, "placeholder image"),
    ("container on processes", ("sweep", "dsv41flash-fp4-mi355x-vllm-agentic-dspark", "--runner", "here"), 4,
     "pins a container image"),
    ("program missing", ("sweep", "tiny-bf16-cpu-vllm-256-64", "--runner", "local"), 4, "make engine-cpu"),
    ("unknown point", (*SWEEP, "--only", "tp1/c3"), 2, "tp1/c1"),
    ("unknown arm", (*SWEEP, "--arm", "no-mono"), 2, "no arm 'no-mono'"),
    ("nothing to sweep", ("sweep", "--runner", "simulator"), 2, "say what to sweep"),
    ("block without plan", (*SWEEP, "--block", "base-tp1"), 2, "--block goes with --plan"),
    ("no such run", ("sweep", "--resume", "runs/none"), 7, "no such run folder"),
    ("no such run to show", ("show", "none"), 2, "none"),
    ("unknown command", ("swep",), 2, "perhaps you meant 'sweep'"),
    ("not a plan", ("sweep", "--plan", "recipes/toy.yaml", "--runner", "simulator"), 3, "not JSON"),
]


@pytest.mark.parametrize(("words", "code", "part"), [case[1:] for case in COMMANDS], ids=[case[0] for case in COMMANDS])
def test_commands(repository, words, code, part):
    repository.write("recipes/toy.yaml", GOOD)
    repository.write("runners/here.yaml", "place: here\nlaunch: process\nserves: any\nexecutable: infx-sim\n")
    done = repository.infx(*words)
    assert done.returncode == code, done.stderr
    assert part in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert repository.runs() == []


def test_a_simulator_that_does_not_stand_in_is_refused(repository):
    """The engine's own /version decides: a simulated engine can never pass as a measured one."""
    repository.write("recipes/toy.yaml", GOOD)
    repository.write("runners/here.yaml", "place: here\nlaunch: process\nserves: any\nexecutable: infx-sim\n"
                                          "env: {INFX_SIM_HARDWARE: mi355x}\n")
    done = repository.infx("sweep", "toy", "--runner", "here")
    assert done.returncode == 1 and "stands-in: false" in done.stderr
    (result,) = repository.root.glob("runs/*/points/*/*/*/result.json")
    assert json.loads(result.read_text())["reasons"][0]["code"] == "engine-wrong-engine"


def test_a_run_of_a_newer_format(repository):
    repository.write("recipes/toy.yaml", GOOD)
    assert repository.infx(*SWEEP, "--quick").returncode in (0, 1)
    (run,) = repository.runs()
    path = run / "run.json"
    path.write_text(path.read_text().replace('"format-version": 1', '"format-version": 99'))
    for words in (("show", str(run)), ("sweep", "--resume", str(run)), ("plot", str(run)),
                  ("changelog", "append", str(run))):
        done = repository.infx(*words)
        assert done.returncode == 7, (words, done.stderr)
        assert "99" in done.stderr and "Traceback" not in done.stderr
