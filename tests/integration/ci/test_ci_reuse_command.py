"""`infx ci reuse` and `infx ci results` as processes: on run folders alone, and against the fake code host."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from infx.schema.plan import Plan
from tests.fakes.github import TOKEN, CodeHost, Trouble
from tests.fakes.pull_world import KEY, LOG, make_world, measured

ALL = "full-sweep-enabled-no-canary"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = make_world(tmp_path_factory.mktemp("reuse"))
    made.git("checkout", "-q", "mono")
    done = made.infx("ci", "plan", "--label", ALL, "--base", "main", "--head", made.seed, "--out", "plans")
    assert done.returncode == 0, done.stderr
    made.plans = [Plan.model_validate_json(path.read_text()) for path in sorted((made.root / "plans").glob("*.json"))]
    for tp, plan in zip((2, 4), made.plans, strict=True):
        measured(plan, made.root / "runs", f"20261201T09000{tp}Z-{KEY}-00000{tp}", made.seed)
    return made


@pytest.fixture
def host():
    made = CodeHost()
    yield made
    made.close()


def test_run_folders_stand_for_a_plan_without_a_code_host(world):
    done = world.infx("ci", "reuse", "--run", "runs", "--plan", "plans", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["qualifies"], len(found["covered"]), found["notes"]) == (0, True, 14, [])


def test_half_of_it_is_refused_with_what_to_do(world):
    done = world.infx("ci", "reuse", "--run", "000002", "--plan", "plans")
    assert done.returncode == 13 and f"{KEY}/tp4/c1: point-missing: no run measured it" in done.stdout
    assert "do: sweep with a full-sweep label" in done.stdout and "7 reasons against reuse" in done.stderr


def test_the_harness_is_compared_by_its_sources(world, tmp_path):
    world.git("checkout", "-q", "-b", "docs", "mono")
    world.write("docs/x.md", "words\n")
    world.commit()
    same = world.infx("ci", "reuse", "--run", "runs", "--plan", "plans")
    world.write("infx/run.py", "other code\n")
    world.commit()
    other = world.infx("ci", "reuse", "--run", "runs", "--plan", "plans")
    back = world.infx("ci", "reuse", "--run", "runs", "--plan", "plans", "--head", "mono")
    world.git("checkout", "-q", "mono")
    assert (same.returncode, other.returncode, back.returncode) == (0, 13, 0)
    assert "infx or pyproject.toml differ between" in other.stdout
    measured(world.plans[0], tmp_path, "20261201T090009Z-lost-1", "0" * 40)
    lost = world.infx("ci", "reuse", "--run", str(tmp_path), "--plan", "plans")
    assert "commit 000000000000 is not in this clone: fetch it" in lost.stdout


@pytest.mark.parametrize(("words", "code", "said"), [
    ([], 2, "give either --run or --pull"), (["--run", "runs", "--pull", "7"], 2, "give either"),
    (["--run", "runs", "--plan", "no.json"], 2, "no such plan file"),
    (["--run", "plans", "--plan", "plans"], 2, "no run"),
    (["--run", "runs", "--plan", "event.json"], 3, "not JSON"), (["--run", "runs"], 13, "1 reasons"),
    (["--run", "runs", "--plan", "plans", "--digest", "x"], 2, "IMAGE=sha256"),
    (["--pull", "7", "--plan", "plans", "--repository", "org/name"], 2, "no token"),
])
def test_wrong_words_are_explained(world, words, code, said):
    (world.root / "event.json").write_text("{")
    done = world.infx("ci", "reuse", *words, GITHUB_TOKEN="", GH_TOKEN="")
    assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (code, True, False), done.stderr


def test_results_are_proposed_as_a_file_and_appended_once(world):
    out = world.root / "runs/entry.yaml"
    done = world.infx("ci", "results", "--run", "runs", "--plan", "plans", "--name", "sweep-501", "-o", str(out))
    assert done.returncode == 0, done.stderr
    text = out.read_text()
    assert text.startswith(f"- kind: results\n  run: \"sweep-501-{KEY}\"\n") and text.count("- {point: ") == 14
    before = (world.root / LOG).read_bytes()
    for said in ("-1", "unchanged"):
        done = world.infx("ci", "results", "--run", "runs", "--plan", "plans", "--name", "sweep-501", "--append")
        assert done.returncode == 0 and said in done.stdout, done.stderr
    assert (world.root / LOG).read_bytes() == before + b"\n" + text.encode()
    world.git("checkout", "-q", LOG)
    refused = world.infx("ci", "results", "--run", "000002", "--plan", "plans", "--append")
    assert refused.returncode == 13 and (world.root / LOG).read_bytes() == before


# --- against the code host ----------------------------------------------------------------------------------------


def sweep(world, host, run=501, folders=(2, 4)):
    host.pull(7, world.seed, commits=[world.seed])
    host.permissions.update(maintainer="write", reader="read")
    host.run(run, world.seed, jobs=tuple((f"{KEY} base-tp{tp} / measure", "success") for tp in (2, 4)))
    for tp in folders:
        [folder] = (world.root / "runs").glob(f"*-00000{tp}")
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for path in sorted(folder.rglob("*")):
                archive.write(path, f"{folder.name}/{path.relative_to(folder)}")
        host.artefact(run, f"run-{KEY}.base-tp{tp}.json", stream.getvalue())


def ask(world, host, tmp_path, *more, token=TOKEN):
    return world.infx("ci", "reuse", "--pull", "7", "--repository", "org/name", "--plan", "plans", "--out",
                      str(tmp_path / "got"), *more, GITHUB_TOKEN=token, GITHUB_API_URL=host.api)


@pytest.mark.parametrize("command", ["/use 501", "/reuse-sweep-run", "/reuse-sweep-run 501", None])
def test_a_pull_requests_sweep_is_fetched_verified_and_judged(world, host, tmp_path, command):
    sweep(world, host)
    if command:
        host.comment(7, "maintainer", command)
    done = ask(world, host, tmp_path, "--post")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "covered  14 points" in done.stdout and f"run 501 of commit {world.seed[:12]}" in done.stdout
    assert host.comments[7][-1]["body"].startswith("<!-- infx:reuse -->\n**Reuse: yes.** 14 points")
    assert len(host.storage_headers) == 2 and TOKEN not in done.stdout + done.stderr


def test_an_outsiders_comment_is_told_and_changes_nothing(world, host, tmp_path):
    sweep(world, host)
    host.comment(7, "stranger", "/use 999", association="NONE")
    host.comment(7, "reader", "/use 998", association="MEMBER")
    done = ask(world, host, tmp_path)
    assert done.returncode == 0 and "the newest" in done.stdout
    assert "by stranger: not-accepted: its author is an outsider (NONE)" in done.stdout
    assert "by reader: not-accepted: its author may not write here (read)" in done.stdout


def test_a_force_push_during_the_sweep_drops_it(world, host, tmp_path):
    sweep(world, host)
    host.pull(7, "f" * 40, commits=["f" * 40])
    done = ask(world, host, tmp_path)
    assert done.returncode == 13 and "no sweep of its commits is known" in done.stdout
    host.comment(7, "maintainer", "/use 501")
    done = ask(world, host, tmp_path, "--post")
    assert "other-commit" in done.stdout and "a force-push drops commits" in done.stdout
    assert "**Reuse: no.** 1 reasons" in host.comments[7][-1]["body"]


def test_missing_and_altered_artefacts_are_named(world, host, tmp_path):
    sweep(world, host, folders=(2,))
    done = ask(world, host, tmp_path)
    assert done.returncode == 13 and "2 jobs measured, 1 left their run folders" in done.stdout
    host.artefacts[501].clear()
    sweep(world, host, run=502)
    last = host.artefacts[502][-1]
    host.zips[last["id"]] += b"x"
    done = ask(world, host, tmp_path / "again")
    assert done.returncode == 13 and f"artefact {last['name']}: artefact-altered" in done.stdout


def test_a_green_run_of_skipped_jobs_is_none(world, host, tmp_path):
    host.pull(7, world.seed)
    host.run(501, world.seed, jobs=(("plan", "success"), ("canary", "skipped"), ("sweep", "skipped")))
    done = ask(world, host, tmp_path)
    assert done.returncode == 13 and "nothing-measured" in done.stdout and "2 of 3 jobs were skipped" in done.stdout


def test_an_expired_token_and_a_limit_are_explained(world, host, tmp_path):
    sweep(world, host)
    done = ask(world, host, tmp_path, token="ghs_old")
    assert done.returncode == 12 and "401 Bad credentials" in done.stderr and "renew it" in done.stderr
    assert "ghs_old" not in done.stderr
    host.troubles.append(Trouble("pulls/7", 429, {"Retry-After": "100000"}))
    done = ask(world, host, tmp_path)
    assert done.returncode == 10 and "for another 100000 s" in done.stderr


@pytest.mark.parametrize(("name", "said"), [
    ("../escape", "no plain file of its own folder"), ("/etc/x", "no plain file"), ("a\\b", "no plain file"),
    (None, "not a zip file"),
])
def test_a_hostile_artefact_writes_nothing(world, host, tmp_path, name, said):
    sweep(world, host, folders=(2,))
    stream = io.BytesIO()
    if name:
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("good/run.json", "{}")
            archive.writestr(zipfile.ZipInfo(name), "x")
    host.artefact(501, "run-bad", stream.getvalue() or b"no zip")
    done = ask(world, host, tmp_path)
    assert done.returncode == 13 and "artefact-altered" in done.stdout and said in done.stdout
    assert not (tmp_path / "got/run-bad").exists() and not (tmp_path / "escape").exists()
