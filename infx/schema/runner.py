"""A runner profile: where and how engines start, and for which labels."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from infx.schema.recipe import EnvName, Seconds
from infx.schema.strict import Strict


class Limits(Strict):
    """Time limits of one engine start, seconds."""

    ready_s: Seconds = Field(default=3600.0, description="Launch to the first generated token.")
    quiet_s: Seconds = Field(default=300.0, description="Silence of a request after which it counts as hung.")
    request_s: Seconds = Field(default=3600.0, description="Longest life of one request.")
    stop_s: Seconds = Field(default=30.0, description="SIGTERM to SIGKILL.")


class Mount(Strict):
    """A folder or file of the host inside the container."""

    source: str = Field(min_length=1, description="Path on the host; ~ and $NAME are the caller's. It must exist.")
    target: str = Field(pattern="^/", description="Absolute path inside.")
    read_only: bool = Field(default=True, description="Mounted read-only.")


class Container(Strict):
    """How a container is run: the words of `docker run`, checked before anything starts."""

    tool: Literal["docker", "podman"] = Field(default="docker", description="Command line that runs containers.")
    pull: Literal["missing", "always", "never"] = Field(default="missing", description="When the image is pulled.")
    devices: list[str] = Field(default_factory=list, description="Device files or folders; each must exist.")
    gpu_request: str | None = Field(default=None, description="--gpus of Docker's NVIDIA runtime; {gpus} is filled in.")
    groups: list[str] = Field(default_factory=list, description="Groups to add; a name must exist in the image.")
    ipc: Literal["host", "private"] | None = Field(default=None, description="IPC namespace.")
    shm_size: str | None = Field(default=None, pattern=r"^\d+[bkmg]?$", description="Size of /dev/shm.")
    ulimits: dict[str, str] = Field(default_factory=dict, description="Limits by name, SOFT or SOFT:HARD.")
    security_options: list[str] = Field(default_factory=list, description="Values of --security-opt.")
    capabilities: list[str] = Field(default_factory=list, description="Values of --cap-add.")
    mounts: list[Mount] = Field(default_factory=list, description="Host paths inside the container.")
    user: Literal["image", "caller"] = Field(default="image", description="Whose user and group run the engine.")

    @model_validator(mode="after")
    def accepted_by_its_tool(self) -> Container:
        if self.tool == "podman" and self.ipc == "host" and self.shm_size is not None:
            raise ValueError("podman refuses `shm-size` with `ipc: host`; remove one of them")
        return self


class Slurm(Strict):
    """What a job asks of Slurm, one job a block; null and empty ask for nothing."""

    partition: str | None = Field(default=None, min_length=1, description="Partition; null: the cluster's default.")
    account: str | None = Field(default=None, min_length=1, description="Account that is charged.")
    qos: str | None = Field(default=None, min_length=1, description="Quality of service.")
    gres: str | None = Field(default="gpu:{gpus}", description="Generic resources of a job; {gpus} is filled in.")
    cpus: int | None = Field(default=None, ge=1, description="CPUs of a job, the load client's included.")
    memory: str | None = Field(default=None, pattern=r"^\d+[KMGT]?$", description="Memory of a job; 0 is the node's.")
    time_limit_min: int = Field(default=240, ge=1, description="Time limit of a job, minutes.")
    requeue: bool = Field(default=True, description="Slurm queues a job again after node failure or preemption.")
    options: list[str] = Field(default_factory=list, description="Further words for sbatch, e.g. --constraint=mi355x.")
    python: str | None = Field(default=None, pattern="^/", description="Python that has infx on the nodes; null: the "
                               "submitter's own, on shared storage.")
    images: str = Field(default="/tmp/infx-images", description="pyxis: folder of a node that keeps "
                        "imported images; $NAME is the job's.")
    poll_s: Seconds = Field(default=2.0, description="Pause between two looks at the queue.")
    settle_s: Seconds = Field(default=60.0, description="How long a job's files may take to show on shared storage "
                              "after it has ended.")


class Runner(Strict):
    """A runner profile; its name is the file's stem."""

    name: str = Field(description="File stem; not written in the file.")
    description: str = Field(default="", description="One line for people.")
    place: Literal["here", "slurm"] = Field(description="Where engines start.")
    launch: Literal["process", "docker", "pyxis", "endpoint"] = Field(description="How engines start.")
    serves: list[str] | Literal["any"] = Field(description="Labels that this profile serves, or any.")
    hardware: list[str] | None = Field(default=None, description="Devices that this profile has; null: any.")
    stands_in: bool = Field(
        default=False,
        description="The engine stands in for the pinned one (the simulator): placeholder images are allowed, and "
        "the engine must say in /version that it simulates.",
    )
    exclusive: bool = Field(
        default=True, description="A sweep holds the machine alone: a second one is refused while it runs."
    )
    executable: str | None = Field(default=None, description="process: program, on PATH or relative to the repository.")
    slurm: Slurm | None = Field(default=None, description="place: slurm: what its jobs ask for.")
    container: Container | None = Field(default=None, description="docker, pyxis: how the container is run.")
    gpus: int | None = Field(default=None, ge=0, description="Accelerators of a node; null: not counted.")
    visible: EnvName | None = Field(
        default=None, description="Name that tells the engine its accelerators, e.g. ROCR_VISIBLE_DEVICES."
    )
    gpu_metrics: Literal["amd-smi", "nvidia-smi"] | None = Field(
        default=None, description="Vendor's tool that samples power, clocks, heat and memory once a second; null: none."
    )
    url: str | None = Field(default=None, pattern=r"^https?://\S+$", description="endpoint: base URL of the engine.")
    env: dict[EnvName, str] = Field(
        default_factory=dict, description="Set for every engine; {hardware}, {image} and {model} are filled in."
    )
    pass_env: list[EnvName] = Field(default_factory=list, description="Names passed through from the caller, unread.")
    limits: Limits = Field(default=Limits(), description="Time limits.")

    @model_validator(mode="after")
    def fits_its_launch(self) -> Runner:
        if (self.executable is not None) != (self.launch == "process"):
            raise ValueError("`executable` is needed for launch: process, and refused elsewhere")
        if (self.container is not None) != (self.launch in ("docker", "pyxis")):
            raise ValueError("`container` is needed for launch: docker and pyxis, and refused elsewhere")
        if (self.slurm is not None) != (self.place == "slurm"):
            raise ValueError("`slurm` is needed for place: slurm, and refused elsewhere")
        if self.launch == "pyxis" and self.place != "slurm":
            raise ValueError("launch: pyxis is a plugin of Slurm: it needs place: slurm")
        if self.place == "slurm" and self.launch == "endpoint":
            raise ValueError("an endpoint runs already: take place: here, or start it in the job by another launch")
        if (self.url is not None) != (self.launch == "endpoint"):
            raise ValueError("`url` is needed for launch: endpoint, and refused elsewhere")
        return self
