# Everything here sets itself up: a fresh machine needs Python 3.11 or newer, and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
GATE := $(BIN)/queueproof gate

.DEFAULT_GOAL := help
.PHONY: help gate test test-slow soak check lint fmt clean

help: ## List what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

gate: $(STAMP) ## Prove the reference queue: the main job, under a minute
	$(GATE)

test: $(STAMP) ## Every test that is not slow, with a count by kind
	$(BIN)/python -m pytest -m 'not slow'
	@$(BIN)/python tests/count.py

test-slow: $(STAMP) ## The slow tests
	$(BIN)/python -m pytest -m slow

soak: $(STAMP) ## Twenty gates in a row: only passes, and nothing left behind
	$(BIN)/python tests/soak.py 20

check: lint test ## What CI runs before the gate

lint: $(STAMP) ## Style, types, import direction, generated files
	$(BIN)/ruff check harness scenarios reference_queue reports tests
	$(BIN)/ruff format --check harness scenarios reference_queue reports tests
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

fmt: $(STAMP) ## Format
	$(BIN)/ruff check --fix-only --exit-zero harness scenarios reference_queue reports tests
	$(BIN)/ruff format harness scenarios reference_queue reports tests

clean: ## Remove runs and caches, keep the environment
	rm -rf .queueproof .pytest_cache .mypy_cache .ruff_cache .hypothesis
