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
        if (self.url is not None) != (self.launch == "endpoint"):
            raise ValueError("`url` is needed for launch: endpoint, and refused elsewhere")
        return self
