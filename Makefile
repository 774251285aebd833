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

# All tables of docs/results.md: finished runs are skipped, one that was cut off goes on. Some twelve hours on two cores.
GRID = $(BIN)/python -m truepair.reproduce.noise_grid
LABELS = $(BIN)/python -m truepair.reproduce.label_grid wikipedia fashion_precomp emoji --root $(DATA)/..
results: setup
	$(GRID) $(DATA) --methods infonce crcl crcl-single triplet oracle
	$(GRID) $(DATA) --rates 0 0.2 0.4 0.6 --methods gsc ugncl
	$(GRID) $(DATA) --rates 0.4 --methods gsc-dual
	$(GRID) $(DATA) --epochs 20 --rates 0.4 --methods infonce oracle crcl --results results/noise-20-epochs --runs runs/noise-20-epochs
	$(GRID) $(DATA) --epochs 16 --engine sgr --rates 0.4 --methods oracle infonce ugncl gsc gsc-dual crcl
	$(GRID) $(DATA) --epochs 16 --engine sgr --rates 0 0.2 0.6 --seeds 0 --methods oracle infonce ugncl gsc crcl
	$(GRID) $(DATA) --epochs 16 --engine sgraf --rates 0.4 --methods crcl
	$(GRID) $(DATA) --results results/disncl --rates 0 0.2 0.4 0.6 --methods disncl
	$(GRID) $(DATA) --results results/disncl --rates 0.4 0.6 --methods disncl-align disncl-align-dis disncl-align-dis-soft
	$(GRID) $(DATA) --results results/disncl --rates 0.4 --methods disncl-fdmer disncl-dmim disncl-mvib
	$(GRID) $(DATA) --results results/disncl --rates 0.4 --seeds 0 --methods disncl-entangled
	$(GRID) scenes --results results/disncl --rates 0 0.2 0.4 0.6 --methods disncl
	$(GRID) scenes --results results/disncl --rates 0.4 0.6 --methods disncl-align
	$(GRID) scenes --results results/disncl --rates 0.4 --seeds 0 --methods disncl-entangled
	$(BIN)/python -m truepair.reproduce.noise_report
	$(LABELS)
	$(LABELS) --seeds 0 --methods uot-rcl-given-labels uot-rcl-no-relation uot-rcl-random-set uot-rcl-uniform uot-rcl-letter
	$(BIN)/python -m truepair.reproduce.label_report
	$(BIN)/python -m truepair.reproduce.audit_grid --root $(DATA)/..
	$(BIN)/python -m truepair.reproduce.audit_grid --root $(DATA)/.. --data fashion emoji --seeds 1 2
	$(BIN)/python -m truepair.reproduce.audit_retrain $(DATA)
	$(BIN)/python -m truepair.reproduce.audit_report

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
