"""tests/conftest.py does what it says: a required component cannot be skipped, and leftovers fail the test."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SKIPS = "import pytest\ndef test_it():\n    pytest.skip('no daemon')\n"
PASSES = "def test_it():\n    pass\n"
LEAVES_PROCESS = (
    "import subprocess\ndef test_it():\n"
    "    subprocess.Popen(['sh', '-c', 'setsid sleep 25 >/dev/null 2>&1 & exit 0']).wait()\n"
)
LEAVES_FILE = "import tempfile\ndef test_it():\n    open(tempfile.mkstemp(suffix='-mine')[1], 'w').close()\n"
ALLOWED = "import pytest\npytestmark = pytest.mark.leaves('*-mine')\n" + LEAVES_FILE


@pytest.fixture
def run(tmp_path):
    """Runs pytest over one file of a small test tree that has this project's conftest.py."""

    def run(file: str, source: str, require: str = "", argument: str = "tests/real") -> tuple[int, str]:
        path = tmp_path / "tests" / file
        path.parent.mkdir(parents=True)
        path.write_text(source, encoding="utf-8")
        shutil.copy(CONFTEST, tmp_path / "tests" / "conftest.py")
        (tmp_path / "tests" / "conftest.py").write_text(
            CONFTEST.read_text(encoding="utf-8").replace("GRACE_S = 10.0", "GRACE_S = 0.2"), encoding="utf-8"
        )
        markers = [f"{name}: test\n" for name in ("vllm", "docker", "slurm", "browser", "real")]
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    " + "    ".join(markers), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", argument],
            cwd=tmp_path,
            env={**os.environ, "INFX_REQUIRE": require},
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_skip_is_a_skip_when_nothing_is_required(run):
    code, text = run("real/docker/test_a.py", SKIPS)
    assert (code, "1 skipped" in text) == (0, True)


def test_a_skip_of_a_required_component_fails(run):
    code, text = run("real/docker/test_a.py", SKIPS, require="docker")
    assert code == 1
    assert "INFX_REQUIRE names docker, yet: Skipped: no daemon" in text


def test_a_required_component_without_a_test_fails(run):
    code, text = run("real/docker/test_a.py", PASSES, require="docker,slurm")
    assert code == 1
    assert "INFX_REQUIRE names slurm, but no test of it ran" in text
    assert "names docker" not in text


def test_other_folders_are_not_asked_for_the_component(run):
    assert run("repo/test_a.py", PASSES, require="docker", argument="tests/repo")[0] == 0


def test_an_unknown_component_is_refused(run):
    code, text = run("real/docker/test_a.py", PASSES, require="doker")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "INFX_REQUIRE names doker; known are vllm, docker, slurm, browser" in text


@pytest.mark.parametrize(
    ("source", "found"), [(LEAVES_PROCESS, "left behind: process"), (LEAVES_FILE, "left behind: temp file tmp")]
)
def test_leftovers_fail_the_test(run, source, found):
    code, text = run("integration/test_a.py", source, argument="tests/integration")
    assert code == 1
    assert found in text


def test_a_known_leftover_of_another_program_is_let_through(run):
    assert run("integration/test_a.py", ALLOWED, argument="tests/integration")[0] == 0
