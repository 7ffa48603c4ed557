"""The edges of the simulator: process, HTTP, clock and log. Everything beneath is pure."""

from infx.simulator.app.process import main

__all__ = ["main"]
