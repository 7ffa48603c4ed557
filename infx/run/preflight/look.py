"""Looking at a machine for a runner: program or daemon, devices, images, disk, ports, leases and accelerators."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import requests

from infx.errors import InfxError, RunnerError
from infx.run.launch.container import last_line, tool
from infx.run.launch.process import find_executable, free_port
from infx.run.lease import held, lease_folder
from infx.run.preflight.check import Check, fails, ok, unknown
from infx.run.preflight.gpus import NVIDIA_QUERY, Gpu, amd_gpus, gpu_checks, nvidia_gpus
from infx.schema.image import Pin, parse_image
from infx.schema.runner import Container, Runner

RUN_ROOM_GIB = 2.0
"""Room for run folders: a full agentic ladder with its logs and columns stays below."""
IMAGE_ROOM_GIB = 80.0
"""Room for an image that is still to be pulled: ROCm and CUDA engine images unpack to 30–70 GiB."""


def check_runner(runner: Runner, *, root: Path, images: Sequence[str], out: Path, environment: Mapping[str, str]
                 ) -> list[Check]:
    """Every check of a runner on this machine; never raises for what it finds.

    ``images``: references that its recipes pin; ``out``: where run folders are made.
    """
    if runner.place == "slurm":
        return [_found("scheduler", "sbatch"), unknown("node", "its engines start on the cluster's nodes",
                                                      "run this check in a job, with the profile that the node uses")]
    if runner.launch == "endpoint":
        return [_endpoint(runner.url or ""), *_here(runner, out, environment)]
    if runner.container is not None:
        return [*_container(runner.container, images), *_here(runner, out, environment)]
    return [_program(runner, root), *_here(runner, out, environment)]


def _here(runner: Runner, out: Path, environment: Mapping[str, str]) -> list[Check]:
    return [_disk("disk", out, RUN_ROOM_GIB), _ports(), _leases(runner, environment), *_accelerators(runner)]


def _program(runner: Runner, root: Path) -> Check:
    try:
        return ok("program", find_executable(runner.executable or "", root))
    except InfxError as error:
        return fails("program", error.message, error.hint)


def _found(name: str, program: str) -> Check:
    path = shutil.which(program)
    return ok(name, path) if path else fails(name, f"{program} is not on PATH", "install the scheduler's client")


def _endpoint(url: str) -> Check:
    try:
        reply = requests.get(f"{url.rstrip('/')}/version", timeout=5, allow_redirects=False)
    except requests.RequestException as error:
        return fails("endpoint", f"{url} does not answer: {type(error).__name__}", "start the engine, or correct `url`")
    if reply.status_code != 200:
        return fails("endpoint", f"GET {url}/version: status {reply.status_code}", "is this the engine?")
    return ok("endpoint", f"{url} answers")


def _container(container: Container, images: Sequence[str]) -> list[Check]:
    try:
        said = tool(container.tool, "version", "--format", "{{.Server.Version}}" if container.tool == "docker"
                    else "{{.Client.Version}}", timeout_s=20)
    except RunnerError as error:
        return [fails("daemon", error.message, error.hint), _devices(container)]
    if said.returncode != 0:
        return [fails("daemon", f"{container.tool}: {last_line(said.stderr)}", "start its daemon, or join its group "
                      "(`docker`) and log in again"), _devices(container)]
    checks = [_image(container, image) for image in images]
    room = ok("daemon-disk", "every image is here")
    if not images or any(not check.reason.endswith(" is here") for check in checks):
        room = _daemon_disk(container)
    return [ok("daemon", f"{container.tool} {said.stdout.strip()}"), _devices(container), *checks, room]


def _devices(container: Container) -> Check:
    sources = [os.path.expandvars(Path(mount.source).expanduser()) for mount in container.mounts]
    missing = [path for path in [*container.devices, *sources] if not Path(path).exists()]
    if missing:
        return fails("devices", f"not on this machine: {', '.join(missing)}", "correct `devices` and `mounts`, load "
                     "the driver, or make the folder")
    return ok("devices", f"{len(container.devices)} devices and {len(sources)} mount sources exist")


def _image(container: Container, image: str) -> Check:
    if parse_image(image).pin in (Pin.PACKAGE, Pin.PLACEHOLDER):
        return fails("image", f"{image} is no container image", "such a recipe cannot run on this runner")
    try:
        if tool(container.tool, "image", "inspect", image, timeout_s=60).returncode == 0:
            return ok("image", f"{image} is here")
        if container.pull == "never":
            return fails("image", f"{image} is not here, and pull: never", f"`{container.tool} pull {image}`")
        asked = tool(container.tool, "manifest", "inspect", image, timeout_s=60)
    except RunnerError as error:
        return unknown("image", error.message, error.hint)
    if asked.returncode == 0:
        return ok("image", f"{image} can be pulled")
    why = last_line(asked.stderr)
    if any(word in why for word in ("manifest unknown", "no such manifest", "not found")):
        return fails("image", f"{image}: {why}", "correct the reference in the recipe")
    return unknown("image", f"{image} is not here, and the registry does not say: {why}", f"`{container.tool} pull "
                   f"{image}` tells")


def _daemon_disk(container: Container) -> Check:
    form = "{{.DockerRootDir}}" if container.tool == "docker" else "{{.Store.GraphRoot}}"
    said = tool(container.tool, "info", "--format", form)
    place = Path(said.stdout.strip() or "/nowhere")
    if said.returncode != 0 or not place.exists():
        return unknown("daemon-disk", "where the daemon keeps images cannot be read from here")
    return _disk("daemon-disk", place, IMAGE_ROOM_GIB)


def _disk(name: str, place: Path, wanted_gib: float) -> Check:
    place = place.absolute()
    while not place.exists():
        place = place.parent
    try:
        free = shutil.disk_usage(place).free / 2**30
    except OSError as error:
        return unknown(name, f"{place}: {error.strerror}")
    if not os.access(place, os.W_OK) and name == "disk":
        return fails(name, f"{place} cannot be written", "take another --out")
    text = f"{free:.1f} GiB free at {place}"
    return ok(name, text) if free >= wanted_gib else fails(name, f"{text}, {wanted_gib:g} are wanted", "make room")


def _ports() -> Check:
    try:
        port = free_port()
        with socket.socket() as server, socket.socket() as client:
            server.bind(("127.0.0.1", port))
            server.listen()
            client.settimeout(2)
            client.connect(("127.0.0.1", port))
    except OSError as error:
        return fails("ports", f"a loopback port cannot be had: {error.strerror}", "see the firewall and the port range")
    return ok("ports", "a free loopback port can be bound and reached")


def _leases(runner: Runner, environment: Mapping[str, str]) -> Check:
    try:
        holders = held(lease_folder(environment), runner.gpus or 0)
    except OSError as error:
        return fails("leases", f"{lease_folder(environment)}: {error.strerror}", "set INFX_LEASE_DIR to a folder that "
                     "you may write to")
    if holders:
        return fails("leases", f"held: {', '.join(holders)}", "another sweep runs; wait for it")
    return ok("leases", "nobody holds this machine")


def _accelerators(runner: Runner) -> list[Check]:
    if runner.gpu_metrics is None:
        return [] if runner.gpus is None else [unknown("gpus", "the profile names no tool that could tell",
                                                       "set gpu-metrics: amd-smi or nvidia-smi")]
    gpus, why = _ask(runner.gpu_metrics)
    if not gpus:
        names = ("gpus", "gpu-idle", "gpu-memory", "power-cap", "partition")
        return [*(unknown(name, why, f"install {runner.gpu_metrics}, or see its own words") for name in names),
                numa_balancing(_numa())]
    return [*gpu_checks(gpus, runner.gpus), numa_balancing(_numa())]


def _ask(name: str) -> tuple[list[Gpu], str]:
    """The accelerators, or why there are none."""
    calls = [["nvidia-smi", f"--query-gpu={','.join(NVIDIA_QUERY)}", "--format=csv"]]
    if name == "amd-smi":
        calls = [["amd-smi", "static", "--json"], ["amd-smi", "metric", "--json"]]
    texts = []
    for call in calls:
        try:
            done = subprocess.run(call, capture_output=True, text=True, errors="replace", timeout=60,
                                  stdin=subprocess.DEVNULL)
        except FileNotFoundError:
            return [], f"{name} is not on PATH"
        except (OSError, subprocess.TimeoutExpired) as error:
            return [], f"{name} does not answer: {type(error).__name__}"
        if done.returncode != 0:
            return [], f"{name} {call[1]}: {last_line(done.stderr or done.stdout)}"
        texts.append(done.stdout)
    gpus = nvidia_gpus(texts[0]) if name == "nvidia-smi" else amd_gpus(*texts)
    return gpus, "" if gpus else f"{name} lists no accelerator that can be read"


def _numa() -> str | None:
    try:
        return Path("/proc/sys/kernel/numa_balancing").read_text().strip()
    except OSError:
        return None


def numa_balancing(value: str | None) -> Check:
    """Whether the kernel moves pages between NUMA nodes by itself, which AMD's and NVIDIA's guides switch off."""
    if value is None:
        return unknown("numa", "this kernel does not say whether it balances NUMA nodes")
    if value != "0":
        return fails("numa", f"automatic NUMA balancing is on ({value})", "sysctl kernel.numa_balancing=0")
    return ok("numa", "automatic NUMA balancing is off")
