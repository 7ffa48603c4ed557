"""What the simulator knows of a model and of a GPU, and the constants of configs/simulator.yaml."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import yaml

from infx.predict.roofline import DeviceShape, ModelShape
from infx.predict.steptime import Overheads
from infx.sources.tree import Tree, find_tree

CONSTANTS = "configs/simulator.yaml"
GIB = 2.0**30


@dataclass(frozen=True)
class SimModel:
    """A model as the simulator needs it; memory per whole model in bytes unless the name says otherwise."""

    key: str
    architecture: str
    context: int
    shape: ModelShape
    weight_bytes: float
    kv_pool_bytes: float
    reserve_bytes: float = 0.0
    engram_bytes: float = 0.0
    buffer_bytes: float = 0.0
    mono: dict[str, object] | None = None


@dataclass(frozen=True)
class SimHardware:
    """A GPU type: its architecture name (gfx950 …) and its peaks."""

    key: str
    arch: str
    gpus: int
    device: DeviceShape


@dataclass(frozen=True)
class Constants:
    """The parsed constants; ``raw`` is the file's content."""

    raw: dict

    def overheads(self, arch: str) -> Overheads:
        """Overheads of a GPU architecture (``other`` where it has no row of its own)."""
        row = self.raw["overheads"].get(arch) or self.raw["overheads"]["other"]
        names = {field.name for field in fields(Overheads)}
        found: dict[str, float] = {}
        for key, value in row.items():
            name = key.replace("-", "_")
            if name.endswith("_us"):
                found[name[:-3]] = value * 1e-6
            elif name in names:
                found[name] = value
        return Overheads(**found)


@cache
def load_constants() -> Constants:
    """The constants of the nearest repository (or of the package)."""
    tree: Tree = find_tree(Path.cwd())
    return Constants(yaml.safe_load(tree.read_bytes(CONSTANTS)))


def hardware(constants: Constants, key: str) -> SimHardware:
    """A GPU by its catalog key; KeyError where unknown."""
    row = constants.raw["hardware"][key]
    device = DeviceShape(
        memory_bytes_s=row["bandwidth-gb-s"] * 1e9,
        peak_flops=row["fp8-tflops"] * 1e12,
        link_bytes_s=row["link-gb-s"] * 1e9,
        memory_bytes=row["memory-gib"] * GIB,
    )
    return SimHardware(key, row["arch"], row["gpus"], device)


def model(constants: Constants, name: str) -> SimModel:
    """A model by key, hub name, or local folder with a config.json; KeyError where none of them is known."""
    for key, row in constants.raw["models"].items():
        if name == key or name in row["names"]:
            return _known(key, row)
    config = Path(name) / "config.json"
    if config.is_file():
        return from_config(Path(name).name, json.loads(config.read_text()))
    raise KeyError(name)


def _known(key: str, row: dict) -> SimModel:
    shape = {name.replace("-", "_"): value for name, value in row["shape"].items()}
    numbers = {name: float(value) if isinstance(value, str) else value for name, value in shape.items()}
    return SimModel(
        key=key,
        architecture=row["architecture"],
        context=row["context"],
        shape=ModelShape(**numbers),
        weight_bytes=row["weights-gib"] * GIB,
        kv_pool_bytes=row["kv-pool-bytes"],
        reserve_bytes=row.get("reserve-gib", 0) * GIB,
        engram_bytes=row.get("engram-gib", 0) * GIB,
        buffer_bytes=row.get("buffer-mib-per-batched-token", 0) * 2**20,
        mono=row.get("mono"),
    )


def from_config(key: str, config: dict) -> SimModel:
    """A dense decoder from its Hugging Face config.json, in 16-bit weights."""
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    heads = config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads", heads)
    head = config.get("head_dim") or hidden // heads
    attention = hidden * head * (2 * heads + 2 * kv_heads)
    body = layers * (attention + 3 * hidden * config["intermediate_size"])
    vocabulary = config["vocab_size"] * hidden
    kv = 2 * layers * kv_heads * head * 2
    shape = ModelShape(
        layers=layers,
        prompt_layers=layers,
        hidden=hidden,
        dense_bytes=2.0 * (body + vocabulary),
        active_decode=body + vocabulary,
        active_prompt=body,
        kv_bytes=kv,
        pair_flops=4.0 * heads * head * layers,
    )
    return SimModel(
        key=key,
        architecture=config.get("model_type", "unknown"),
        context=config.get("max_position_embeddings", 32768),
        shape=shape,
        weight_bytes=2.0 * (body + 2 * vocabulary),
        kv_pool_bytes=kv,
    )
