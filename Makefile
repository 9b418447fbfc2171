# Two commands on a fresh machine do everything: `make demo` and `make test`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Tests on a real Slurm mostly wait for it: `auto` is one process more than cores (tests/conftest.py), and
# tests/schedule.py says which file goes where and when.
PROVE_ARGS ?= -n 2 --dist load
PYTEST_ARGS ?= -n auto --dist loadfile
# The public traces, converted; benchmarks/reproduce.py says which files it wants.
TRACES ?= ../shared/traces

# name==lowest.* of what is needed at run time
OLDEST = $(shell sed -n '/^install_requires/,/^$$/s/^ *\([a-z0-9-]*\) >=\([0-9.]*\),.*/\1==\2.*/p' setup.cfg)

# Golden files are compared here, never written: that is what `make record` is for.
COMPARED = @[ -z "$$SLURM_FAIR_RECORD" ] || { echo "SLURM_FAIR_RECORD is set: unset it, golden files are to be compared"; exit 2; }

.PHONY: help demo test tests-of record oldest prove check format lint types layers bench reproduce reproduce-hops speed fidelity install clean

help: ## Show what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(STAMP): setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("slurm_fair needs Python 3.11 or newer: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

install: $(STAMP) ## Make the virtual environment in .venv

demo: $(STAMP) ## A private Slurm (or a virtual cluster), three tenants, 29 jobs, proof that all were treated fairly
	@$(BIN)/slurm-fair demo --or-virtual

test: $(STAMP) ## All tests, with a real Slurm (installs Debian's packages when it is root and they are missing)
	$(COMPARED)
	@$(BIN)/python -m slurm_fair.lab --packages-only
	$(BIN)/python -m pytest $(PYTEST_ARGS)

tests-of: $(STAMP) ## The unit tests that touch a module (FILE=slurm_fair/planner/isolated.py; RUN=1 runs them)
	@$(BIN)/python -m tests.tests_of $(if $(RUN),--run) '$(FILE)'

record: $(STAMP) ## Write the golden files anew: look at the difference before you commit it
	SLURM_FAIR_RECORD=1 $(BIN)/python -m pytest -q tests/unit -k "recorded or example_is_what"

oldest: ## Unit tests and properties with the oldest releases that setup.cfg allows
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --editable '.[dev]' $(OLDEST)
	$(VENV)-oldest/bin/python -m pytest $(PYTEST_ARGS) tests/unit tests/properties

prove: $(STAMP) ## The long proofs, on a real Slurm and in simulations (writes docs/proofs.md), and all properties with new examples
	$(COMPARED)
	@$(BIN)/python -m slurm_fair.lab --packages-only
	@failed=0; \
	$(BIN)/python -m tests.prove $(PROVE_ARGS) || failed=$$?; \
	$(BIN)/python -m pytest $(PROVE_ARGS) --new-examples tests/unit tests/properties || failed=$$?; \
	exit $$failed

check: lint types layers ## What a change must pass before its tests: format, lint, types, layers

format: $(STAMP) ## Put the code into its form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

bench: $(STAMP) ## The benchmarks (poll.py needs a real Slurm; hops.py and estimator.py write parts of docs)
	$(BIN)/python benchmarks/ledger.py
	$(BIN)/python benchmarks/astraea.py
	$(BIN)/python benchmarks/hops.py --write docs/solvers.md
	$(BIN)/python benchmarks/estimator.py --traces $(TRACES) --write docs/throughput.md
	$(BIN)/python benchmarks/poll.py

reproduce: $(STAMP) ## Published comparisons made again from public traces (TRACES=folder); writes docs/reproduction.md
	$(BIN)/python benchmarks/reproduce.py --traces $(TRACES) --write docs/reproduction.md

reproduce-hops: $(STAMP) ## The experiment of the Hops paper made again on the virtual cluster (TRACES=folder); writes docs/reproduction-hops.md
	$(BIN)/python benchmarks/reproduce_hops.py --traces $(TRACES) --write docs/reproduction-hops.md

speed: $(STAMP) ## How fast simulations of public traces are (TRACES=folder); writes docs/speed.md
	$(BIN)/python benchmarks/speed.py --traces $(TRACES) --write docs/speed.md

fidelity: $(STAMP) ## Real runs on a private Slurm beside simulations of the same jobs (over an hour); writes docs/fidelity.md
	@$(BIN)/python -m slurm_fair.lab --packages-only
	$(BIN)/python -m benchmarks.fidelity --write docs/fidelity.md

clean: ## Remove what the other commands made
	rm -rf $(VENV) $(VENV)-oldest build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
