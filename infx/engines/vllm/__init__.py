"""vLLM as an engine module."""

from __future__ import annotations

from infx.engines.protocol import Engine
from infx.engines.vllm import command, observe, offload
from infx.engines.vllm.counters import COUNTERS

ENGINE = Engine(
    name="vllm",
    program=("vllm",),
    homes=command.HOMES,
    gpus=command.gpus,
    argv=command.argv,
    listen=command.listen,
    counters=COUNTERS,
    context_limit=command.context_limit,
    version_of=command.version_of,
    reset_prefix_cache="/reset_prefix_cache",
    observe=observe.observe,
    features=observe.features,
    effective=observe.effective,
    decides=observe.DECIDES,
    server_pid=observe.server_pid,
    offloads=offload.BACKENDS,
)
