"""SGLang as an engine module."""

from __future__ import annotations

from infx.engines.protocol import Engine
from infx.engines.sglang import command, observe
from infx.engines.sglang.counters import COUNTERS

ENGINE = Engine(
    name="sglang",
    program=("python3", "-m", "sglang.launch_server"),
    homes=command.HOMES,
    gpus=command.gpus,
    argv=command.argv,
    listen=command.listen,
    counters=COUNTERS,
    context_limit=command.context_limit,
    version_of=command.version_of,
    reset_prefix_cache="/flush_cache",
    observe=observe.observe,
    features=observe.features,
    effective=observe.effective,
    decides={flag: (name,) for flag, name in observe.ALIASES.items()},
    server_pid=observe.server_pid,
    env=command.env,
    offloads=command.OFFLOADS,
    version_path="/get_server_info",
)
