# Everything works on a fresh clone: the virtual environment in .venv is made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One for each version of Python: with another, the environment is made anew.
VERSION := $(shell $(PYTHON) -c 'import sys; print("{}.{}".format(*sys.version_info))')
STAMP := $(VENV)/.installed-$(VERSION)
DOCS_STAMP := $(VENV)/.installed-docs-$(VERSION)
GPU := .gpu-env
GPU_STAMP := $(GPU)/.installed-$(VERSION)

.PHONY: help install gpu-env maze play test quick lint format docs bench clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP)  ## make .venv with the package and its development tools

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "hvin_jax needs Python >= 3.11, but $(PYTHON) is $$($(PYTHON) --version); try: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,vizdoom,sweep]'
	@touch $@

gpu-env: $(GPU_STAMP)  ## an environment for benchmarks.gpu: JAX with CUDA, 3 GB, in .gpu-env

$(GPU_STAMP): pyproject.toml
	$(PYTHON) -m venv --clear $(GPU)
	$(GPU)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[cuda12]'
	@touch $@

maze: $(STAMP)  ## train, test and draw a small highway VIN: runs/quickstart
	$(BIN)/python -m experiments.maze --config=experiments/configs/quickstart.py
	@echo; echo "Plan on a map of your own: $(BIN)/hvin plan FILE"

play: $(STAMP)  ## a page in the browser: draw maps, watch planners think
	$(BIN)/hvin play

quick: $(STAMP)  ## the tests of a minute: no engine, no processes, nothing slow
	$(BIN)/python -m pytest -m 'not (engine or browser or processes or slow)'

test: lint  ## the linter, the type checker and the whole test suite
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)  ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DOCS_STAMP)  ## the site, its notebooks run: docs/_build/html/index.html
	$(BIN)/sphinx-build --builder html --conf-dir docs --fail-on-warning --keep-going --quiet . docs/_build/html
	$(BIN)/python docs/_ext/built_links.py docs/_build/html
	@echo "The site: docs/_build/html/index.html"

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

bench: $(STAMP)  ## time and memory of planners and mazes (about 15 minutes on 2 cores)
	$(BIN)/python -m benchmarks.planner
	$(BIN)/python -m benchmarks.training
	$(BIN)/python -m benchmarks.mazes

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) $(GPU) docs/_build build *.egg-info .pytest_cache .mypy_cache .ruff_cache
