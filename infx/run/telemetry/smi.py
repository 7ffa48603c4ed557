"""Edge: a vendor's tool beside an engine. It writes to a file of the run; nothing is read while a window is open.

The tool runs under the same guard as engines, so it ends with its sweep. One that is not there, ends, or says
nothing never stops a sweep: power is then unknown, with the reason.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from infx.errors import EngineError
from infx.run.launch.process import EngineProcess
from infx.run.telemetry import parse_amd, parse_nvidia
from infx.run.telemetry.samples import GpuSample

_STOP_S = 2.0
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class _Tool:
    command: Callable[[str, float], list[str]]
    parse: Callable[[Iterable[str]], list[GpuSample]]
    environment: Mapping[str, str]


TOOLS: dict[str, _Tool] = {
    "amd-smi": _Tool(parse_amd.command, parse_amd.parse, parse_amd.ENVIRONMENT),
    "nvidia-smi": _Tool(parse_nvidia.command, parse_nvidia.parse, parse_nvidia.ENVIRONMENT),
}


class GpuSampler:
    """A started tool, what it said so far, and its end."""

    def __init__(self, tool: str, output: Path, environment: Mapping[str, str], interval_s: float = 1.0) -> None:
        """Start ``tool`` (a key of TOOLS) with its output in the file ``output``; see `why_none` when it cannot."""
        self.tool = tool
        self.output = output.absolute()
        self.interval_s = interval_s
        self._failure: str | None = None
        self._process: EngineProcess | None = None
        program = shutil.which(tool, path=environment.get("PATH"))
        if program is None:
            self._failure = f"{tool} is not on PATH"
            return
        made = TOOLS[tool]
        try:
            self._process = EngineProcess(made.command(program, interval_s), {**environment, **made.environment},
                                          self.output, self.output.parent, _STOP_S)
        except (EngineError, OSError) as error:
            self._failure = f"{tool} could not be started: {error}"

    def samples(self) -> list[GpuSample]:
        """Every sample so far, in the tool's order."""
        return TOOLS[self.tool].parse(self._text().splitlines())

    def settle(self, unix: float) -> list[GpuSample]:
        """The samples once one is later than ``unix``, after three intervals at most, or once the tool has ended."""
        until = time.monotonic() + 3 * self.interval_s
        size = -1
        while True:
            grown = self._size()
            if grown != size:
                size, found = grown, self.samples()
            if any(sample.unix > unix for sample in found[-64:]) or not self._alive or time.monotonic() > until:
                return found
            time.sleep(_LOOK_S)

    def why_none(self) -> str:
        """Why no sample is known: the tool's failure, its last words, or its silence."""
        if self._failure is not None:
            return self._failure
        words = [line.strip() for line in self._text().splitlines() if line.strip()]
        last = f": {words[-1][:160]}" if words else " and said nothing"
        return f"{self.tool} {'printed no sample' if self._alive else 'ended'}{last}"

    def stop(self) -> list[GpuSample]:
        """End the tool and return its samples."""
        if self._process is not None:
            self._process.stop()
        return self.samples()

    @property
    def _alive(self) -> bool:
        return self._process is not None and self._process.alive

    def _size(self) -> int:
        try:
            return self.output.stat().st_size
        except OSError:
            return 0

    def _text(self) -> str:
        try:
            return self.output.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
