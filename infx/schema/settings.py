"""The server that a point needs: layout, environment and arguments, resolved."""

from __future__ import annotations

from pydantic import Field

from infx.schema.strict import Strict


class Parallel(Strict):
    """A parallel layout; `gpus` is what the engine module says that it uses (the divisor of every metric)."""

    tp: int = Field(ge=1, description="Tensor-parallel size.")
    pp: int = Field(default=1, ge=1, description="Pipeline-parallel size.")
    dp: int = Field(default=1, ge=1, description="Data-parallel size.")
    ep: int = Field(default=1, ge=1, description="Expert-parallel size.")
    gpus: int = Field(ge=1, description="GPUs that the layout uses.")

    def axes(self) -> str:
        """Key part: `tp2`, then every other axis that is not 1."""
        extra = [f"{name}{size}" for name, size in (("pp", self.pp), ("dp", self.dp), ("ep", self.ep)) if size != 1]
        return "-".join([f"tp{self.tp}", *extra])


class ServerConfig(Strict):
    """What an engine start is asked to be: declared facts only, no port and no host."""

    id: str = Field(description="Fingerprint of the fields below.")
    engine: str = Field(description="Engine module.")
    image: str = Field(description="Image reference as declared.")
    model: str = Field(description="Model key.")
    model_path: str = Field(description="What the engine is given as model: hub id or folder.")
    served_name: str = Field(description="Model name in requests.")
    parallel: Parallel = Field(description="Layout.")
    argv: list[str] = Field(description="Arguments after the program's name, without port and host.")
    env: dict[str, str] = Field(description="Environment that the recipe sets.")
