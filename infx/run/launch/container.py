"""Launching an engine in a container: the pinned image by digest, under a name and labels of ours."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from infx.errors import RemoteError, RunnerError
from infx.run.launch.prepared import Prepared
from infx.run.launch.process import Ended
from infx.schema.image import Pin, parse_image
from infx.schema.runner import Container

LABEL = "org.infx.sweep"
"""Label of every container that infx starts; its value says which process of which machine started it."""


@dataclass(frozen=True)
class ImageFacts:
    """A local image: ``runs`` is the reference to run it by, ``digest`` the registry's, ``env`` its own."""

    id: str
    runs: str
    digest: str | None
    env: dict[str, str]


@dataclass(frozen=True)
class ContainerRequest:
    """What is to run: words after the entrypoint, environment by value, names passed through, and who asks."""

    name: str
    owner: str
    program: Sequence[str]
    argv: Sequence[str]
    env: Mapping[str, str]
    passed: Mapping[str, str]
    gpus: Sequence[int]
    grace_s: float


def resolve_image(container: Container, reference: str, *, known: str | None = None) -> ImageFacts:
    """Pull as the profile says and read the digest. Raises RemoteError, or RunnerError when the tag has moved.

    ``known``: the digest that this plan ran by before; another one now is refused with both. An image id (a build
    that no registry has) is never pulled, and is its own digest.
    """
    if parse_image(reference).pin is Pin.LOCAL:
        facts = _inspect(container.tool, reference)
        if not facts:
            raise _not_here(container, reference)
        return ImageFacts(facts["Id"], facts["Id"], facts["Id"], _env(facts))
    if container.pull == "always" or (container.pull == "missing" and not _inspect(container.tool, reference)):
        pulled = tool(container.tool, "pull", "--quiet", reference, timeout_s=7200)
        if pulled.returncode != 0:
            raise RemoteError(f"cannot pull {reference}: {last_line(pulled.stderr)}",
                              hint="check the reference, the registry and the login of the container tool")
    facts = _inspect(container.tool, reference)
    if not facts:
        raise _not_here(container, reference)
    digest = _digest(facts, reference)
    if known is not None and digest != known:
        raise RunnerError(f"the tag {reference} has moved: planned {known}, now {digest}",
                          hint="pin the digest in the recipe, or plan anew")
    repository = parse_image(reference).repository
    return ImageFacts(facts["Id"], f"{repository}@{digest}" if digest else facts["Id"], digest, _env(facts))


def local_id(container: Container, image: str) -> str:
    """The id (``sha256:…``) of an image of this machine, named in any way. Raises RunnerError when there is none."""
    facts = _inspect(container.tool, image)
    if not facts:
        raise _not_here(container, image)
    found = str(facts["Id"])
    return found if found.startswith("sha256:") else f"sha256:{found}"


def _not_here(container: Container, image: str) -> RunnerError:
    return RunnerError(f"the image {image} is not on this machine", allowed="an image that was pulled or built before",
                       hint=f"see `{container.tool} image ls`; `{container.tool} pull {image}` if a registry has it")


def _env(facts: dict) -> dict[str, str]:
    return dict(word.split("=", 1) for word in facts.get("Config", {}).get("Env") or [] if "=" in word)


def prepare(container: Container, image: ImageFacts, asked: ContainerRequest) -> Prepared:
    """The `run` command; every mount source and device must exist. Raises RunnerError naming all that do not."""
    words = [container.tool, "run", "--name", asked.name, "--label", f"{LABEL}={asked.owner}", "--network", "host",
             "--pull", "never", *_options(container, asked)]
    for name in [*asked.env, *(name for name in asked.passed if name not in asked.env)]:
        words += ["--env", name]
    words += ["--entrypoint", asked.program[0], image.runs, *asked.program[1:], *asked.argv]
    client = {name: os.environ[name] for name in ("PATH", "HOME", "DOCKER_HOST", "DOCKER_CONFIG", "XDG_RUNTIME_DIR",
                                                   "CONTAINER_HOST") if name in os.environ}
    return Prepared(
        shown=words, env=asked.env, spawn_env={**client, **asked.passed, **asked.env}, passed=list(asked.passed),
        digest=image.digest, image_env=image.env, container=asked.name,
        stop=[container.tool, "stop", "--time", str(int(asked.grace_s)), asked.name],
        abandon=[container.tool, "rm", "--force", asked.name],
        afterwards=lambda ended: _afterwards(container.tool, asked.name, ended),
    )


def _options(container: Container, asked: ContainerRequest) -> list[str]:
    words: list[str] = []
    missing = [path for path in container.devices if not Path(path).exists()]
    for mount in container.mounts:
        source = os.path.expandvars(Path(mount.source).expanduser())
        if not Path(source).exists():
            missing.append(source)
        words += ["--volume", f"{source}:{mount.target}{':ro' if mount.read_only else ''}"]
    if missing:
        raise RunnerError(f"not on this machine: {', '.join(missing)}",
                          hint="correct `devices` and `mounts` of the profile; missing sources are never created")
    words += [word for device in container.devices for word in ("--device", device)]
    words += [word for group in container.groups for word in ("--group-add", group)]
    words += [word for option in container.security_options for word in ("--security-opt", option)]
    words += [word for name in container.capabilities for word in ("--cap-add", name)]
    words += [word for name, limit in container.ulimits.items() for word in ("--ulimit", f"{name}={limit}")]
    words += ["--ipc", container.ipc] if container.ipc else []
    words += ["--shm-size", container.shm_size] if container.shm_size else []
    words += ["--user", f"{os.getuid()}:{os.getgid()}"] if container.user == "caller" else []
    if container.gpu_request:
        words += ["--gpus", container.gpu_request.replace("{gpus}", ",".join(map(str, asked.gpus)))]
    return words


def _afterwards(name: str, container: str, ended: Ended) -> Ended:
    """Exit state from the daemon, then the container is removed. A container that is gone was removed under us."""
    found = tool(name, "inspect", "--type", "container", container)
    removed = tool(name, "rm", "--force", container)
    under_us = "in progress" in removed.stderr or "o such container" in removed.stderr
    if found.returncode != 0 or under_us:
        return ended if ended.asked else replace(ended, error="the container was removed from outside")
    state = json.loads(found.stdout)[0]["State"]
    code = int(state.get("ExitCode", 0))
    signal = code - 128 if 128 < code < 160 else None
    error = "the kernel killed it: out of memory" if state.get("OOMKilled") else str(state.get("Error") or "")
    return replace(ended, exit_code=None if signal else code, signal=signal, error=error or ended.error)


def tool(name: str, *words: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """Run the container tool. Raises RunnerError when it is missing or does not answer."""
    try:
        return subprocess.run([name, *words], capture_output=True, text=True, timeout=timeout_s,
                              stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise RunnerError(f"{name} is not installed", hint="install it, or take another runner") from error
    except subprocess.TimeoutExpired as error:
        raise RunnerError(f"`{name} {words[0]}` did not answer within {timeout_s:.0f} s",
                          hint="see that its daemon is alive") from error


def last_line(text: str) -> str:
    """The last non-empty line of a tool's message."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def _inspect(name: str, reference: str) -> dict:
    found = tool(name, "image", "inspect", reference)
    if found.returncode != 0:
        if "annot connect" in found.stderr or "permission denied" in found.stderr:
            raise RunnerError(f"{name}: {last_line(found.stderr)}", hint="start its daemon, or join its group")
        return {}
    return json.loads(found.stdout)[0]


def _digest(facts: dict, reference: str) -> str | None:
    """The digest under which this repository knows the image; None for an image that no registry has."""
    repository = parse_image(reference).repository
    found = [entry.split("@", 1) for entry in facts.get("RepoDigests") or [] if "@" in entry]
    exact = [digest for name, digest in found if name == repository or name.removeprefix("docker.io/") == repository]
    return (exact or [digest for _, digest in found] or [None])[0]
