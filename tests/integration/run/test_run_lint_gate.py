"""An error of lint stops a sweep that would measure; on a stand-in, and unofficially, it is only said."""

from __future__ import annotations

from tests.fakes.repository import RECIPE

WRONG = RECIPE.replace("stop:", 'env: {VLLM_NO_SUCH_SETTING: "1"}\nstop:')


def test_an_error_of_lint_stops_a_sweep_that_measures(repository):
    repository.write("recipes/bad.yaml", WRONG)
    repository.engine("good")
    done = repository.infx("sweep", "bad", "--runner", "bad")
    assert done.returncode == 3 and repository.runs() == []
    assert "recipes/bad.yaml:" in done.stderr and "VLLM_NO_SUCH_SETTING" in done.stderr and "R-" in done.stderr
    assert "--unofficial" in done.stderr and "Traceback" not in done.stderr


def test_unofficially_it_is_said_and_the_run_is_marked(repository):
    repository.write("recipes/bad.yaml", WRONG)
    repository.engine("good")
    done = repository.infx("sweep", "bad", "--runner", "bad", "--unofficial")
    assert "lint: recipes/bad.yaml:" in done.stderr and "VLLM_NO_SUCH_SETTING" in done.stderr
    (run,) = repository.runs()
    assert "UNOFFICIAL" in repository.infx("show", str(run)).stdout
    refused = repository.infx("changelog", "append", str(run))
    assert not (repository.root / "perf-changelog.yaml").exists(), refused.stderr
    assert "unofficial" in refused.stderr and (run / "changelog.yaml").is_file()
