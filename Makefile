# Every target sets up what it needs in .venv, from a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ../shared/data/fashion_precomp
# Two test processes on two cores: one thread each, and threads that sleep while they wait.
THREADS := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE

.PHONY: demo test lint bench results setup format clean

demo: setup
	$(BIN)/truepair demo --out demo

test: setup
	$(THREADS) $(BIN)/python -m pytest -n 2 --dist worksteal

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m benchmarks

results: setup
	$(BIN)/python -m truepair.experiments.noise_grid $(DATA) --jobs 2
	$(BIN)/python -m truepair.experiments.noise_report

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

setup: $(VENV)/ready

# torch goes first and pinned (see constraints.txt); then the package and its tools.
$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "truepair needs Python 3.11 or newer: make PYTHON=python3.11"'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch numpy
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) demo runs
