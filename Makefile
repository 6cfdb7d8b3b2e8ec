# Everything a developer or CI runs. `make demo` and `make test` set up what they need.
PYTHON ?= python3
VENV   ?= .venv
BENCH  ?= .venv-bench
BIN    := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: help setup demo test integration soak paper check lint types layers format clean bench-contenders bench bench-flower charts flower-versions docs

help:
	@echo "make demo    run a users' world and both closed loops on bundled data and write a report"
	@echo "make test    run the tests"
	@echo "make check   lint, types, import layers, tests"
	@echo "make integration   tests with real engines and processes"
	@echo "make soak MINUTES=60   elections under faults, simulated and with real processes, for as long as you like"
	@echo "make paper   the paper's claims recomputed from the committed results"
	@echo "make docs    build the documentation site and name the page to open"
	@echo "make setup   build $(VENV) with everything for development"
	@echo "make format  let ruff format the code"
	@echo "make bench-contenders  build $(BENCH) with fedelect and the simulators it is compared with"
	@echo "make charts  build the report's charting library anew (needs npm)"
	@echo "make bench-flower  what GoalDirected costs on Flower, and what noise on opinions costs (minutes)"
	@echo "make flower-versions   tests on Flower with other versions of it; what cannot be installed is skipped by name"
	@echo "make bench   compare the training engine with them (BENCH_OPTIONS=--quick for a few minutes)"

setup: $(VENV)/.ready

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fedelect needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing what tests and development need into $(VENV): about 2.5 GB, minutes"
	$(INSTALL) '.[dev]'
	@touch $@

$(VENV)/.ready-demo: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing what the demo needs into $(VENV): about 600 MB, a minute or so"
	$(INSTALL) '.[lab]'
	@touch $@

# With everything for development there, the demo has what it needs.
demo: $(if $(wildcard $(VENV)/.ready),setup,$(VENV)/.ready-demo)
	$(BIN)/fedelect demo --out runs/demo

$(VENV)/.ready-docs: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing what the documentation site needs into $(VENV): about 900 MB, a minute or so"
	$(INSTALL) '.[docs,flower,lab,peer]'
	@touch $@

docs: $(if $(wildcard $(VENV)/.ready),setup,$(VENV)/.ready-docs)
	$(BIN)/python -m tools.site

test: setup
	$(BIN)/python -m pytest -q -m 'not integration and not paper'

# Real engines and processes; what this machine lacks is skipped by name and listed at the end.
integration: setup
	$(BIN)/python -m pytest -q -n 0 -m integration -rs

# Ctrl-C ends it with its counts.
MINUTES ?= 60
soak: setup
	$(BIN)/python -m tools.soak --minutes $(MINUTES)

flower-versions: setup
	$(BIN)/python tools/flower_versions.py

paper: setup
	$(BIN)/python -m pytest -q -n 0 -m paper -rs

check: lint types layers test

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy src tests benchmarks paper $(wildcard examples/flower/*.py)

layers: setup
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench-contenders: $(BENCH)/.ready

$(BENCH)/.ready: pyproject.toml benchmarks/contenders.txt
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --requirement benchmarks/contenders.txt --editable .
	@touch $@

bench: bench-contenders
	$(BENCH)/bin/python benchmarks/engine.py $(BENCH_OPTIONS)

# The report's charting library, from npm packages of the exact versions in tools/charts/package.json. Users need no npm.
charts:
	tools/charts/build.sh

bench-flower: setup
	$(BIN)/python benchmarks/flower/overhead.py
	$(BIN)/python benchmarks/flower/scale.py
	$(BIN)/python benchmarks/flower/privacy.py

clean:
	rm -rf $(VENV) $(BENCH) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
