"""``python -m infx.simulator serve …``: the same as the console script ``infx-sim``."""

from infx.simulator.app import main

main()
