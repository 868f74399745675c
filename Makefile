# Everything here sets itself up: a fresh machine needs Python 3.11 or newer, and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
GATE := $(BIN)/queueproof gate

.DEFAULT_GOAL := help
.PHONY: help gate test test-slow soak soak-tenants soak-drills soak-kill matrix battery matrix-battery drain drain-full check lint fmt clean

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
	$(BIN)/python -m pytest -m 'not slow' -n 2 --dist loadfile
	@$(BIN)/python tests/count.py

test-slow: $(STAMP) ## The slow tests
	$(BIN)/python -m pytest -m slow

soak: $(STAMP) ## Twenty gates in a row: only passes, and nothing left behind; then the heavy scenarios
	$(BIN)/python tests/soak.py 20
	$(BIN)/python tests/soak_tenants.py

soak-tenants: $(STAMP) ## Fifty claimers, killed at random, on capped tenants
	$(BIN)/python tests/soak_tenants.py

soak-drills: $(STAMP) ## Thirty minutes of faults composed from seeds, which are printed
	$(BIN)/queueproof drill --random $(or $(SEED),1) --for 30m

soak-kill: $(STAMP) ## Kill the harness itself at twenty random moments: nothing may be left
	$(BIN)/python tests/soak_kill.py 20 $(SEED)

matrix: $(STAMP) ## The gate on every PostgreSQL that can be had here, verdicts compared
	$(BIN)/python tests/matrix.py

battery: $(STAMP) ## Every broken queue five times against what must catch it
	$(BIN)/python -m harness.bench.battery --repeat 5

matrix-battery: $(STAMP) ## Every broken queue against every scenario, and every sound one three times
	$(BIN)/python -m harness.bench.battery --whole
	$(BIN)/python -m harness.bench.battery --sound --repeat 3

drain: $(STAMP) ## The worked example measured, ten times as fast: about three minutes
	$(BIN)/queueproof load --arrival 12/s --service 0.8s --slots 16 --outage 300s --time-scale 10 --workers 2 --batch 1 --no-durable --seed 7

drain-full: $(STAMP) ## The worked example measured at its own pace: about half an hour
	$(BIN)/queueproof load --arrival 12/s --service 0.8s --slots 16 --outage 300s --workers 2 --batch 1 --seed 7

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
