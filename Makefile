# Everything works on a fresh clone: the virtual environment in .venv is made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help install maze test lint format bench clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP)  ## make .venv with the package and its development tools

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "hvin_jax needs Python >= 3.11, but $(PYTHON) is $$($(PYTHON) --version); try: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,vizdoom,sweep]'
	@touch $@

maze: $(STAMP)  ## train, test and draw a small highway VIN: runs/quickstart
	$(BIN)/python -m experiments.maze --config=experiments/configs/quickstart.py
	@echo; echo "Plan on a map of your own: $(BIN)/python -m experiments.plan --map=FILE"

test: lint  ## the linter, the type checker and the whole test suite
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)  ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)  ## time and memory of planners and mazes (about 15 minutes on 2 cores)
	$(BIN)/python -m benchmarks.planner
	$(BIN)/python -m benchmarks.training
	$(BIN)/python -m benchmarks.mazes

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
