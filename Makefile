# Environments are made once: a stamp file in each remembers what it was made from. PYTHON picks the interpreter.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENGINE_VENV := .venv-engine-cpu
ENGINE_MODELS := .engines/models
HEADLINE := dsv41flash-fp4-mi355x-vllm-agentic-dspark
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check
ARGS ?=
CLOCKED := tests/integration/load tests/integration/simulator
TOGETHER := $(filter-out $(CLOCKED),$(wildcard tests/integration/[a-z]*)) tests/unit tests/repo

.DELETE_ON_ERROR:
.PHONY: help python-is-new-enough install sweep test test-real engine-cpu mutants lint generated clean

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

python-is-new-enough:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else \
	  "infx needs Python 3.11 or newer, $(PYTHON) is %d.%d: try make PYTHON=/path/to/python3.11" % v[:2])'

$(VENV)/.made: | python-is-new-enough
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) -m venv failed: its venv module may be missing (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml
	@echo "installing infx into $(VENV)"
	@$(PIP_INSTALL) --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@echo "installing the test dependencies into $(VENV)"
	@$(PIP_INSTALL) --editable '.[test]'
	@touch $@

$(VENV)/.installed-lint: $(VENV)/.made
	@$(PIP_INSTALL) 'ruff>=0.9'
	@touch $@

install: $(VENV)/.installed ## make .venv with infx in it

sweep: $(VENV)/.installed ## sweep the headline recipe on the simulator, quickly
	@$(BIN)/infx sweep $(HEADLINE) --runner simulator --quick

# Two workers for most; what judges times of the load client and the simulator runs alone. ARGS picks tests, then all do.
test: $(VENV)/.installed-test ## unit, integration and repository tests
ifeq ($(ARGS),)
	@PYTHONHASHSEED=0 $(BIN)/python -m pytest -n 2 --maxschedchunk 1 $(TOGETHER)
	@$(BIN)/python -m pytest $(CLOCKED)
else
	@$(BIN)/python -m pytest $(ARGS)
endif

engine-cpu: python-is-new-enough ## install the CPU build of vLLM and make its local models (what is there already is kept)
	@$(PYTHON) tools/engine_cpu/install.py --venv $(ENGINE_VENV) --models $(ENGINE_MODELS)

test-real: $(VENV)/.installed-test ## tests against a real engine, container daemon and scheduler (those present)
	@$(BIN)/python -m pytest tests/real $(ARGS)

mutants: $(VENV)/.installed-test ## break the product in small ways; the named tests must fail (ARGS="measure" for a part)
	@$(BIN)/python tools/mutants.py $(ARGS)

lint: $(VENV)/.installed-lint ## ruff over the Python sources
	@$(BIN)/ruff check infx tests tools

generated: $(VENV)/.installed ## write every generated file again
	@$(BIN)/python tools/generate.py
	@$(BIN)/python tools/lint_docs.py
	@$(BIN)/python tools/schemas.py

clean: ## remove the environments, the local models and caches (never runs/)
	rm -rf $(VENV) $(ENGINE_VENV) .engines .pytest_cache .ruff_cache .hypothesis
