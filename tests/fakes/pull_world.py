"""A clone of its own with the headline change on a branch, the events of its pull request, and what it measured."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from infx.results.store import RunStore
from infx.schema.plan import Plan
from tests.fakes import run_folder
from tests.fakes.repository import ROOT, Repository

KEY = "dsv41flash-fp4-mi355x-vllm-agentic-dspark"
RECIPE = f"recipes/dsv41flash/{KEY}.yaml"
LOG = "perf-changelog.yaml"
OLD, NEW = "ac9126e58aa7bbab1856ba6593ba4d5003fea516", "7d0b4e57aac4c4323225b0eee9ae960ce75ffffe"
IDENTITY = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org"}
ENTRY = """- kind: change
  config-keys: [{key}]
  description: [Mono decode kernels.]
  pr-link: https://github.com/org/name/pull/7
{more}"""
DIGEST = f"sha256:{'d' * 64}"


class World(Repository):
    """The repository, its git, and the events of its pull request."""

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.root, env={**os.environ, **IDENTITY}, capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, message: str = "change") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, files: dict[str, str], message: str = "change") -> str:
        self.git("checkout", "-q", "-b", name, "main")
        for path, text in files.items():
            self.write(path, text)
        return self.commit(message)

    def event(self, sha: str, *labels: str, action: str = "synchronize", label: str | None = None,
              fork: str | None = "org/name") -> str:
        value = {
            "action": action, "repository": {"full_name": "org/name"},
            "pull_request": {"number": 7, "labels": [{"name": name} for name in labels],
                             "head": {"ref": "mono", "sha": sha, "repo": fork and {"full_name": fork}},
                             "base": {"ref": "main"}}}
        if label:
            value["label"] = {"name": label}
        (self.root / "event.json").write_text(json.dumps(value))
        return "event.json"

    def plan(self, sha: str, *labels: str, more: tuple[str, ...] = (), **event) -> subprocess.CompletedProcess[str]:
        return self.infx("ci", "plan", "--event", self.event(sha, *labels, **event), "--base", "main", "--head", sha,
                         "--repository", "org/name", *more)

    def json(self, sha: str, *labels: str, more: tuple[str, ...] = (), **event) -> dict:
        done = self.plan(sha, *labels, more=("--json", *more), **event)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def make_world(root: Path) -> World:
    """The trunk has the recipe as it was before the seed's change; the branch ``mono`` makes that change."""
    made = World(root)
    (made.root / "recipes/bad.yaml").unlink()
    made.new = (made.root / RECIPE).read_text()
    dropped = ("VLLM_ROCM_MONO_DECODE: \"1\"", "VLLM_ROCM_QUICK_REDUCE_QUANTIZATION: INT4")
    kept = [line for line in made.new.split("\narms:")[0].split("\n") if not any(name in line for name in dropped)]
    made.old = "\n".join([*kept, ""]).replace(NEW, OLD).replace("tokens: 16384", "tokens: 8192")
    made.write(RECIPE, made.old)
    made.write(LOG, "# The changelog.\n")
    made.write(".gitignore", "event.json\nplans*/\nruns/\nleases/\nout.txt\n")
    made.write(".github/CODEOWNERS", "* @owner\n/recipes/ @owner @other\n/docs/waiver/ @org/keepers\n")
    made.write("docs/PR_REVIEW_CHECKLIST.md", (ROOT / "docs/PR_REVIEW_CHECKLIST.md").read_text())
    made.git("init", "-q", "-b", "main")
    made.commit()
    made.seed = made.branch("mono", {RECIPE: made.new, LOG: "# The changelog.\n" + ENTRY.format(key=KEY, more="")})
    return made



def measured(plan: Plan, parent: Path, name: str, commit: str, *, speed: float = 1.0, digest: str | None = DIGEST,
             **run_changes) -> Path:
    """A run folder as a real runner leaves it for ``plan``: official, every point ok, figures from a formula."""
    made = run_folder.run(name, recipe=plan.recipe, harness_commit=commit, runner="mi355x-docker", quick=plan.quick,
                          unofficial=plan.unofficial, **run_changes)
    with RunStore.create(parent, made, plan) as store:
        for number, block in enumerate(plan.blocks):
            start = f"{number + 1:03d}"
            store.start_folder(start)
            store.write_start(run_folder.start(start, block.id, block.server, at=60.0 * number, digest=digest,
                                               image=plan.servers[block.server].image))
            for key in block.points:
                point = plan.point(key)
                figures = run_folder.curve(point.parallel.tp, point.concurrency, speed)
                store.append_visit(point, start, run_folder.visit(figures), b"columns")
        return store.paths.root
