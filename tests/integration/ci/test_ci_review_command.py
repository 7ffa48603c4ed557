"""`infx ci checklist`, `signoff` and `comment` as processes, on a clone and against the fake code host."""

from __future__ import annotations

import json

import pytest

from infx.schema.plan import Plan
from tests.fakes.github import TOKEN, CodeHost, Trouble
from tests.fakes.pull_world import ENTRY, KEY, LOG, RECIPE, make_world, measured

ALL = "full-sweep-enabled-no-canary"
PERSON = ("upstream", "same-work", "plausible", "words", "readable")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = make_world(tmp_path_factory.mktemp("review"))
    made.git("checkout", "-q", "mono")
    sweep(made, made.seed)
    return made


def sweep(world, commit, name="runs", **more):
    """Run folders of everything that ``commit`` wants, below runs/NAME, one a plan file."""
    out = f"plans-{name}"
    done = world.infx("ci", "plan", "--label", ALL, "--base", "main", "--head", commit, "--out", out)
    assert done.returncode == 0, done.stderr
    for number, path in enumerate(sorted((world.root / out).glob("*.json")), 1):
        plan = Plan.model_validate_json(path.read_text())
        measured(plan, world.root / "runs" / name, f"20261201T09000{number}Z-{KEY}-{name}{number}", commit, **more)


@pytest.fixture
def host():
    made = CodeHost()
    yield made
    made.close()


def text(world, commit, *keys):
    page = world.infx("ci", "checklist", "--head", commit, "--base", "main").stdout
    for key in keys or (*PERSON, "evals"):
        page = page.replace(f"[ ] **{key}**", f"[x] **{key}**")
    return page


def event(world, body, author="owner", association="MEMBER", opener="author", **more):
    value = {"action": "created", "repository": {"full_name": "org/name"},
             "issue": {"number": 7, "user": {"login": opener}, "pull_request": {"url": "…"}},
             "comment": {"id": 1, "body": body, "user": {"login": author, "type": "User"}, "html_url": "https://x",
                         "author_association": association, "created_at": "1", "updated_at": "1"}, **more}
    (world.root / "event.json").write_text(json.dumps(value))
    return "event.json"


def sign(world, commit, body=None, *more, runs="runs/runs", environment=None, **who):
    path = event(world, text(world, commit) if body is None else body, **who)
    return world.infx("ci", "signoff", "--event", path, "--base", "main", "--head", commit, "--run", runs, *more,
                      **(environment or {}))


def boxes(done):
    return {item["key"]: (item["by"], item["holds"], item["message"]) for item in json.loads(done.stdout)["decisions"]}


def test_a_complete_sign_off_stands_and_says_who_decided_what(world):
    done = sign(world, world.seed, None, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = boxes(done)
    assert {key: by for key, (by, _, _) in found.items()} == {
        **dict.fromkeys(("recipes", "waivers", "changelog", "measured", "claims", "coverage"), "machine"),
        **dict.fromkeys((*PERSON, "evals"), "person")}
    assert found["evals"][2] == f"infx runs no evals yet, and {KEY} wants some; a person vouches"
    assert found["measured"][2].startswith("14 points, by 20261201T090001Z") and found["waivers"][2] == "there is none"
    assert found["claims"][2] == "no entry claims anything" and all(holds for _, holds, _ in found.values())
    assert sign(world, world.seed, None, "--json").stdout == done.stdout  # P45


def test_the_fitting_refusal_for_each_wrong_comment(world):
    good = text(world, world.seed)
    cases = [
        (good, {"author": "stranger", "association": "NONE"}, "stranger is an outsider (NONE)"),
        (good, {"author": "other"}, "other does not own perf-changelog.yaml (CODEOWNERS: @owner)"),
        (good, {"opener": "owner"}, "owner wrote this pull request"),
        (good.replace("version 1", "version 0"), {}, "of version 0 of the checklist, now it is version 1"),
        (text(world, "main"), {}, "a later push voids a sign-off"),
    ]
    for body, who, said in cases:
        done = sign(world, world.seed, body, **who)
        assert done.returncode == 13 and said in done.stdout, done.stdout
    other = sign(world, world.seed, None, "--repository", "other/name")
    assert other.returncode == 3 and "the event is of org/name, but this is other/name" in other.stderr
    none = sign(world, world.seed, "LGTM")
    assert none.returncode == 0 and "the comment is no sign-off" in none.stdout


def test_a_later_push_voids_it(world):
    world.git("checkout", "-q", "-b", "later", "mono")
    later = world.commit("one more")
    done = sign(world, later, text(world, world.seed))
    world.git("checkout", "-q", "mono")
    assert done.returncode == 13 and f"it is of commit {world.seed[:12]}, the head is {later[:12]}" in done.stdout


def test_machine_boxes_follow_lint_gate_results_and_waivers(world):
    world.git("checkout", "-q", "-b", "bad", "mono")
    world.write("recipes/more.yaml", (world.root / "recipes/cpu/tiny-bf16-cpu-vllm-256-64.yaml").read_text()
                if (world.root / "recipes/cpu/tiny-bf16-cpu-vllm-256-64.yaml").is_file() else world.new)
    world.write("docs/waiver/9.md", f"---\nrecipes: [{KEY}]\nrules: [R-999]\nwhat: w\nwhy: y\n"
                                    "upstream: https://example.org/1\nremoval: r\n---\n")
    world.write(RECIPE, world.new.replace("tokens: 16384", "tokens: 16385"))
    sha = world.commit()
    done = sign(world, sha, text(world, sha, *PERSON, "changelog", "measured"), "--json")
    world.git("checkout", "-q", "mono")
    found = boxes(done)
    assert done.returncode == 13
    assert not found["changelog"][1] and "C-021 recipe more changed" in found["changelog"][2]
    assert not found["measured"][1] and "the changelog does not say what this branch changes" in found["measured"][2]
    assert not found["waivers"][1] and "there is no rule 'R-999'" in found["waivers"][2]
    assert "this is pull request 7" in found["waivers"][2]
    assert "owner does not own docs/waiver/9.md (CODEOWNERS: @org/keepers)" in json.loads(done.stdout)["refusals"]


def test_missing_points_and_no_runs_fail_the_box(world):
    done = sign(world, world.seed, None, "--json", runs="runs/runs/20261201T090001Z-" + KEY + "-runs1")
    assert "point-missing" in boxes(done)["measured"][2] and "and 1 more" in boxes(done)["measured"][2]


def test_claims_are_judged_from_the_runs(world):  # P58
    claim = "  expect: [{points: c<=8, metric: itl-p50, verdict: better, against: no-mono}]\n"
    sha = world.branch("claim", {RECIPE: world.new, LOG: "# The changelog.\n" + ENTRY.format(key=KEY, more=claim)})
    sweep(world, sha, "claim")
    found = boxes(sign(world, sha, None, "--json", runs="runs/claim"))
    world.git("checkout", "-q", "mono")
    assert found["measured"][1] and found["claims"][:2] == ("machine", False)
    assert f"{KEY}: unproven: c<=8 itl-p50 better" in found["claims"][2]


def published(world, name):
    """A trunk that has results of the seed's recipe, and a branch on it that changes the recipe again."""
    world.git("checkout", "-q", "-b", f"trunk-{name}", "mono")
    done = world.infx("ci", "results", "--run", "runs/runs", "--plan", "plans-runs", "--name", "sweep-1", "--append")
    assert done.returncode == 0, done.stderr
    world.commit("results")
    log = (world.root / LOG).read_text()
    world.git("checkout", "-q", "-b", name)
    ladder = "{tp: 2, concurrency: {from: 1, to: 64}}"
    assert ladder in world.new
    world.write(RECIPE, world.new.replace(ladder, "{tp: 2, concurrency: [1, 2, 4, 8, 16]}").replace(
        "tokens: 16384", "tokens: 8192"))
    world.write(LOG, log + "\n" + ENTRY.format(key=KEY, more=""))
    return world.commit("narrower")


def test_a_narrower_curve_may_not_replace_a_published_one(world):  # P44
    sha = published(world, "narrow")
    done = world.infx("ci", "plan", "--label", ALL, "--base", "trunk-narrow", "--head", sha, "--out", "plans-narrow")
    assert done.returncode == 0, done.stderr
    for number, path in enumerate(sorted((world.root / "plans-narrow").glob("*.json")), 1):
        measured(Plan.model_validate_json(path.read_text()), world.root / "runs/narrow",
                 f"20261202T09000{number}Z-{KEY}-narrow{number}", sha, speed=1.1)
    path = event(world, text(world, sha))
    done = world.infx("ci", "signoff", "--event", path, "--base", "trunk-narrow", "--head", sha, "--run",
                      "runs/narrow", "--json")
    found = boxes(done)
    said = world.infx("ci", "comment", "--base", "trunk-narrow", "--head", sha, "--run", "runs/narrow", "--pull", "7")
    world.git("checkout", "-q", "mono")
    assert found["measured"][1] and not found["coverage"][1]
    assert "tp2: 5 of 7 points of the old curve; missing: tp2/c32, tp2/c64" in found["coverage"][2]
    assert said.returncode == 0, said.stderr
    assert "Coverage: points of a published curve would be lost" in said.stdout
    assert "a tp2 before" in said.stdout and "A tp2 now" in said.stdout
    assert f"**entry sweep-1-{KEY} (figures as recorded) → this change**" in said.stdout
    assert "- kind: results" in said.stdout


def remote(world, host, *more, commit=None, body=None, **who):
    return sign(world, commit or world.seed, body, "--remote", "--post", "--repository", "org/name", *more,
                environment={"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": host.api}, **who)


def test_against_the_code_host_it_posts_a_verdict_and_a_status_for_that_commit(world, host):
    host.pull(7, world.seed, files=[RECIPE, LOG])
    done = remote(world, host)
    assert done.returncode == 0, done.stdout + done.stderr
    [said] = host.comments[7]
    assert said["body"].startswith(f"<!-- infx:signoff -->\n**Sign-off by owner for `{world.seed[:12]}`: accepted.**")
    assert host.statuses == {world.seed: [
        {"state": "success", "context": "infx/signoff", "description": "signed off by owner"}]}
    assert remote(world, host, author="stranger", association="NONE").returncode == 13
    assert host.statuses[world.seed][-1]["state"] == "failure" and len(host.comments[7]) == 1


def test_the_code_host_knows_head_author_files_labels_and_teams(world, host):
    host.pull(7, world.seed, author="owner", files=["docs/waiver/7.md"], labels=("all-evals",))
    done = remote(world, host, "--json")
    said = json.loads(done.stdout)["refusals"]
    assert "owner wrote this pull request: somebody else signs it off" in said
    assert "owner does not own docs/waiver/7.md (CODEOWNERS: @org/keepers)" in said
    assert not boxes(done)["measured"][1] and "evals-missing: it was asked" in boxes(done)["measured"][2]
    host.teams["org/keepers"] = ["owner"]
    host.pull(7, world.seed, files=["docs/waiver/7.md"])
    assert remote(world, host).returncode == 0
    host.pull(7, "e" * 40)
    moved = remote(world, host)
    assert moved.returncode == 3 and "the head of pull request 7 is eeeeeeeeeeee" in moved.stderr


@pytest.mark.parametrize(("value", "code", "said"), [
    ("{", 3, "not JSON"), ("[]", 3, "not an event of a comment"), ('{"issue": {"number": 7}}', 3, "is no pull request"),
    ('{"issue": {"number": 7, "pull_request": {}}}', 3, "not a comment as the code host sends it"),
    (None, 2, "no such event file"),
])
def test_wrong_events_are_explained(world, value, code, said):
    path = world.root / "event.json"
    path.unlink(missing_ok=True)
    if value is not None:
        path.write_text(value)
    done = world.infx("ci", "signoff", "--event", "event.json", "--base", "main", "--head", "mono")
    assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (code, True, False), done.stderr


def test_the_comment_is_written_posted_once_and_replaced(world, host):
    host.pull(7, world.seed)
    words = ("ci", "comment", "--base", "main", "--head", world.seed, "--run", "runs/runs", "--pull", "7", "--post",
             "--repository", "org/name", "--link", "the report=https://example.org/r")
    environment = {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": host.api, "GITHUB_RUN_ID": "501"}
    for word in ("posted", "unchanged"):
        done = world.infx(*words, "-o", "runs/comment.md", **environment)
        assert done.returncode == 0 and f"comment {word}" in done.stderr, done.stderr
    [said] = host.comments[7]
    assert said["body"].startswith("<!-- infx:sweep -->\n### Sweep of ")
    assert f'run: "sweep-501-{KEY}"' in said["body"] and "[the report](https://example.org/r)" in said["body"]
    assert said["body"].partition("\n")[2] == (world.root / "runs/comment.md").read_text()
    refused = world.infx("ci", "comment", "--base", "main", "--head", world.seed, "--post")
    assert refused.returncode == 2 and "--post needs --pull" in refused.stderr


def test_a_comment_without_runs_says_what_is_missing(world):
    done = world.infx("ci", "comment", "--base", "main", "--head", world.seed)
    assert done.returncode == 0 and "**Not to be recorded:**" in done.stdout and "`no-run`" in done.stdout


def test_dead_addresses_are_named_with_their_place(world, host, tmp_path):
    (tmp_path / "docs").mkdir()
    host.pull(7, world.seed)
    (tmp_path / "docs/a.md").write_text(f"one\n[x]({host.api}/nothing/here)\n{host.storage}/signed/0.zip\n")
    host.zips[0] = b"there"
    host.troubles.append(Trouble("/nothing", 404, times=9))
    done = world.infx("ci", "links", "--root", str(tmp_path))
    assert done.returncode == 1 and f"docs/a.md:2: dead: {host.api}/nothing/here (404)" in done.stdout
    assert "2 addresses: 1 ok, 1 dead, 0 unknown" in done.stderr
    host.troubles[0] = Trouble("/nothing", 403, times=9)
    done = world.infx("ci", "links", "--root", str(tmp_path))
    assert done.returncode == 0 and "unknown" in done.stdout
