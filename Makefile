# Every target sets up what it needs in .venv, from a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ../shared/data
# Where this is set, each of the many processes that tests start would compile all it imports anew, torch too.
unexport PYTHONDONTWRITEBYTECODE
# Three test processes on two cores, as some wait for browsers and for processes of their own: one thread each, and
# threads that sleep while they wait. A file's tests stay in one process, so that what they share is made once. Files
# come in the order of their names: sorted by how many tests they have, the few long ones would come last, one alone.
THREADS := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE

.PHONY: demo test lint bench results setup format clean

demo: setup
	$(BIN)/truepair demo --out demo

test: setup
	$(THREADS) $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m benchmarks

# The tables of the documentation (truepair/reproduce/specs): finished runs are skipped, one that was cut off goes on. Some
# sixty hours on two cores, and as many for the last one, grand. Every setting as printed takes days: those tables
# (as-printed-global, as-printed-others, as-printed, disncl-as-printed, labels-as-printed, labels-as-printed-others) are
# run by name; and so is ours-icons, whose data examples/icons.py makes.
TABLES := noise photographs photographs-encoders photographs-local photographs-20-epochs noise-20-epochs noise-local \
	noise-others explored departures crcl-parts crcl-losses crcl-sweeps gsc-parts gsc-exchange gsc-sweeps ugncl-parts \
	rivals-sweeps disncl disncl-images disncl-local disncl-analysis as-printed-mended labels labels-gamma labels-lambda \
	ours-parts ours-parts-noise ours-limits ours-drawings ours-image ours-nearest ours-class ours-emoji held-out \
	clip-from-scratch audit audit-embeddings audit-retrain review grand
results: setup small-clip
	for table in $(TABLES); do $(BIN)/python -m truepair.reproduce run $$table --root $(DATA) || exit 1; done
	$(BIN)/python -m truepair.reproduce report

# The folder that the table clip-from-scratch begins with: a small CLIP with weights drawn anew.
small-clip: setup
	test -d $@ || $(BIN)/python examples/small_clip.py $(DATA)/emoji $@ --side 48 --patch 12 --width 96 --layers 3 --longest 24

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

setup: $(VENV)/ready

# torch goes first and pinned (see constraints.txt); then the package and its tools. Python compiles what it imports: to
# compile all of every package takes longer than to install it.
$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "truepair needs Python 3.11 or newer: make PYTHON=python3.11"'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt torch numpy
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) demo runs
