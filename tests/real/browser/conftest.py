import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[2] / "fakes"), str(Path(__file__).parent)]


@pytest.fixture
def browser():
    """A headless Chromium; the test is skipped (or fails, by INFX_REQUIRE) where there is none."""
    import chromium

    if chromium.find() is None:
        pytest.skip("no chromium on PATH (Debian: apt-get install chromium)")
    made = chromium.Browser()
    yield made
    made.close()
