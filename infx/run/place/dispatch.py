"""A sweep over Slurm: one job a block, watched by its files and its state until each has an end."""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from infx.errors import BusyError, InfxError
from infx.results.adopt import adopt
from infx.results.layout import RESULT_FILES, RunPaths
from infx.results.load import load_run, read_result
from infx.results.store import RunStore
from infx.run.context import Context
from infx.run.events import BlockLost, PointDone, PointSkipped, QueueSeen
from infx.run.place.cluster import Batch, Steps
from infx.run.place.jobs import Fate, Verdict, folder_name, judge, parse_marker, script, submission
from infx.run.policy import Outcome
from infx.run.sweep import SweepOutcome
from infx.schema.plan import Block
from infx.schema.result import Status

Cluster = Batch | Steps
MARKER, RECORD = "done.json", "job.json"


@dataclass
class Job:
    """One job of a run: its folder, name and id, and what is known of it."""

    folder: Path
    name: str
    block: str
    points: list[str]
    id: str | None = None
    verdict: Verdict = Verdict(Fate.QUEUED)
    lost_since: float | None = None
    told: set[Path] = field(default_factory=set)

    @property
    def over(self) -> bool:
        return self.verdict.settled and self.verdict.fate in (Fate.DONE, Fate.LOST)


def submit(context: Context, cluster: Cluster, blocks: Sequence[Block]) -> list[Job]:
    """Write and submit a job for each block. When Slurm refuses one, those before it are cancelled again."""
    jobs: list[Job] = []
    try:
        for block in blocks:
            jobs.append(_submit_one(context, cluster, block))
    except InfxError:
        cluster.cancel([job.id for job in jobs if job.id])
        raise
    return jobs


def _submit_one(context: Context, cluster: Cluster, block: Block) -> Job:
    store, runner = context.store, context.runner
    assert runner.slurm is not None
    folder = (store.paths.jobs / folder_name(block.id, secrets.token_hex(3))).absolute()
    name = job_name(store.paths.root, folder)
    job = Job(folder, name, block.id, list(block.points))
    # The record comes first: a submitter killed right after sbatch leaves a job that is found by its name.
    _record(context, job)
    work = ["sweep", "--plan", str(store.paths.plan.absolute()), "--block", block.id, "--runner", runner.name]
    work += [word for point in block.points for word in ("--only", point)]
    text = script(context.root.absolute(), folder, runner.slurm.python or sys.executable, work)
    store.write_file(folder / "job.sh", text.encode())
    gpus = context.plan.servers[block.server].parallel.gpus
    try:
        job.id = cluster.submit(submission(runner, folder, name, gpus), folder, name, gpus)
    except InfxError:
        (folder / RECORD).unlink()
        raise
    _record(context, job)
    return job


def job_name(run: Path, folder: Path) -> str:
    """The name by which Slurm knows a job: unique, and found again without an id."""
    return f"infx-{run.name.rsplit('-', 1)[-1]}-{folder.name}"


def _record(context: Context, job: Job) -> None:
    facts = {"job": job.id, "name": job.name, "block": job.block, "points": job.points}
    context.store.write_file(job.folder / RECORD, json.dumps(facts, indent=1).encode() + b"\n")


def jobs_of(run: Path) -> list[Job]:
    """The jobs that a run folder has submitted, oldest name first; those taken over already are left out."""
    found = []
    for path in sorted(RunPaths(run).jobs.glob(f"*/{RECORD}")):
        try:
            facts = json.loads(path.read_text())
            job = Job(path.parent.absolute(), facts["name"], facts["block"], facts["points"], facts["job"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # half a record: the job was never submitted
        if not (path.parent / "taken.json").exists():
            found.append(job)
    return found


def look(jobs: Sequence[Job], cluster: Cluster, settle_s: float, now: float) -> bool:
    """Bring every open job's verdict up to date; False when the scheduler did not answer (then markers alone tell)."""
    queue = cluster.queue()
    for job in jobs:
        if job.over:
            continue
        marker = _marker(job)
        if queue is None and marker is None:
            continue
        seen = (queue or {}).get(job.name)
        if seen is not None:
            job.id = seen.id
        job.verdict = judge(seen, marker, submitted=job.id is not None,
                            noticed=(job.folder / "stopped-USR1.json").exists())
        if job.verdict.fate is not Fate.LOST:
            job.lost_since = None
            continue
        job.lost_since = now if job.lost_since is None else job.lost_since
        if now - job.lost_since >= settle_s:
            lives = _still_writes(job)
            job.verdict = (Verdict(Fate.RUNNING, "given up by the scheduler, but it still writes") if lives else
                           Verdict(Fate.LOST, job.verdict.why))
    return queue is not None


def _still_writes(job: Job) -> bool:
    """True while a process holds the lock of the job's own run folder; a dead node's lock is given up for it."""
    for nested in (job.folder / "runs").glob("[!.]*"):
        try:
            RunStore.open(nested).close()
        except BusyError:
            return True
        except InfxError:
            continue
    return False


def _marker(job: Job) -> dict[str, object] | None:
    try:
        return parse_marker((job.folder / MARKER).read_text())
    except OSError:
        return None


def watch(context: Context, cluster: Cluster, jobs: Sequence[Job], *, leave: Callable[[], bool] = lambda: False
          ) -> SweepOutcome:
    """Follow jobs to their ends, take over what they measured, tell all of it.

    When asked to stop, the jobs are cancelled and followed for as long as they may need to clear up; with ``leave``
    they are left alone.
    """
    asked = context.runner.slurm
    assert asked is not None
    deadline = float("inf")
    cancelled = False
    while not all(job.over for job in jobs):
        if context.should_stop() and leave() and cluster.outlives:
            return SweepOutcome((), stopped=True)
        if context.should_stop() and not cancelled:
            cluster.cancel([job.id for job in jobs if job.id and not job.over])
            cancelled = True
            deadline = time.monotonic() + 2 * context.runner.limits.stop_s + 90
        answered = look(jobs, cluster, asked.settle_s if not cancelled else min(asked.settle_s, 5.0), time.monotonic())
        _tell(context, jobs, answered)
        for job in jobs:
            if job.over:
                _take_over(context, job)
        if time.monotonic() > deadline:
            break
        _pause(context, asked.poll_s, [job for job in jobs if not job.over], ignore_stop=cancelled)
    return SweepOutcome(tuple(_outcomes(context, jobs)), stopped=context.should_stop())


def _pause(context: Context, seconds: float, still_open: Sequence[Job], *, ignore_stop: bool) -> None:
    until = time.monotonic() + seconds
    while still_open and time.monotonic() < until and (ignore_stop or not context.should_stop()):
        time.sleep(min(0.1, seconds))


def _tell(context: Context, jobs: Sequence[Job], answered: bool) -> None:
    """The queue as it stands, and every point that a job has stored since the last look."""
    count = {fate: sum(job.verdict.fate is fate for job in jobs) for fate in Fate}
    waits = next((job.verdict.why for job in jobs if job.verdict.fate is Fate.QUEUED and job.verdict.why), "")
    context.emit(QueueSeen(queued=count[Fate.QUEUED], running=count[Fate.RUNNING], done=count[Fate.DONE],
                           lost=count[Fate.LOST], why=waits if answered else "the scheduler does not answer"))
    for job in jobs:
        for path in sorted((job.folder / "runs").glob(f"[!.]*/{RESULT_FILES}")):
            if path not in job.told:
                _tell_point(context, job, path)


def _tell_point(context: Context, job: Job, path: Path) -> None:
    try:
        result = read_result(path)
    except InfxError:
        return  # slow storage: told at the next look, or named when it is taken over
    job.told.add(path)
    context.emit(PointDone(result.point, result, len(result.visits) - 1))


def _take_over(context: Context, job: Job) -> None:
    """Move what a job measured into the run, once; what cannot be taken is told and stays where it is."""
    taken = job.folder / "taken.json"
    if taken.exists():
        return
    if job.verdict.fate is Fate.LOST or "exit code" in job.verdict.why:
        context.emit(BlockLost(job.block, job.id or "", job.verdict.why + _last_words(job)))
    for nested in sorted((job.folder / "runs").glob("[!.]*")):
        try:
            adopt(context.store, nested)
        except InfxError as error:
            context.emit(BlockLost(job.block, job.id or "", f"its results stay in {nested}: {error}"))
    context.store.write_file(taken, json.dumps({"fate": job.verdict.fate, "why": job.verdict.why}).encode() + b"\n")


def _last_words(job: Job) -> str:
    """What the job said last on its own output: the error, where infx refused to go on."""
    try:
        lines = (job.folder / "output.log").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    told = next((at for at in range(len(lines) - 1, -1, -1) if lines[at].startswith("infx: ")), len(lines))
    return "".join(f"\n  | {line}" for line in lines[told:][:4])


def _outcomes(context: Context, jobs: Sequence[Job]) -> list[Outcome]:
    loaded = load_run(context.store.paths.root, metrics=())
    found = []
    for block in context.plan.blocks:
        job = next((job for job in jobs if job.block == block.id), None)
        statuses = {}
        for key in block.points:
            chosen = loaded.chosen(key)
            statuses[key] = chosen.status if chosen is not None else Status.INTERRUPTED
            if chosen is None and job is not None:
                context.emit(PointSkipped(key, job.verdict.why or "its job ended without it"))
        found.append(Outcome(block, statuses))
    return found
