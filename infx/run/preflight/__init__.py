"""Before a sweep and after a dead one: whether a runner can measure, and what dead sweeps left on this machine."""
