# make demo   set everything up, run the quickstart notebook in a kernel, show its report
# make test   set everything up, run every check and test
#
# TORCH=2.14.1 make test   the same with another version of torch
# PYTHON=python3.12 make   the same with another Python

TORCH ?= 2.13.0
PYTHON ?= python3

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
SETUP := $(STAMPS)/project-$(TORCH)
DEMO := build/demo
QUICKSTART := notebooks/01_quickstart.ipynb
TUTORIALS := tests/e2e/test_tutorials.py
NOTEBOOKS ?= $(sort $(wildcard notebooks/*.ipynb))

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo refresh lab test lint types frontend notebooks pytest tutorials bench clean

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

# ---- set-up -------------------------------------------------------------------------------------

setup: $(SETUP)

$(STAMPS)/venv: scripts/system-packages
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	    || { echo "dynamo_nb needs Python 3.10 or newer: PYTHON=python3.12 make ..." >&2; exit 1; }
	@scripts/system-packages $(PYTHON) g++ dot
	@echo "Making an environment in $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS)
	@touch $@

# torch comes first and by exact version: left to the resolver it may be a far larger build.
$(STAMPS)/torch-$(TORCH): $(STAMPS)/venv
	@echo "Installing torch $(TORCH) and what it needs (the largest download: some minutes) ..."
	@$(BIN)/python -m pip install -q "torch==$(TORCH)"
	@rm -f $(STAMPS)/torch-* $(STAMPS)/project-*
	@touch $@

$(SETUP): $(STAMPS)/torch-$(TORCH) pyproject.toml
	@echo "Installing dynamo_nb from this checkout, with JupyterLab and the tests' packages ..."
	@$(BIN)/python -m pip install -q -e '.[test]' "torch==$(TORCH)"
	@echo "The environment is ready: $(VENV)"
	@touch $@

$(STAMPS)/browser: $(STAMPS)/venv
	scripts/system-packages $(PYTHON) chromium
	touch $@

$(STAMPS)/frontend: widgets/package-lock.json $(STAMPS)/venv
	scripts/system-packages $(PYTHON) node npm
	@node -e 'process.exit(Number(parseInt(process.versions.node) < 20))' \
	    || { echo "The front end's tests need Node 20 or newer." >&2; exit 1; }
	cd widgets && npm ci --silent --no-audit --no-fund
	touch $@

# ---- what it is for -----------------------------------------------------------------------------

demo: $(SETUP)
	@$(BIN)/python scripts/demo.py $(QUICKSTART) --into $(DEMO)

# The outputs that nbval compares with: code for any CPU and one thread, as in notebooks/conftest.py.
# NOTEBOOKS=notebooks/08_kernels.ipynb make refresh   only that one
refresh: $(SETUP)
	for notebook in $(NOTEBOOKS); do \
	    ATEN_CPU_CAPABILITY=default OMP_NUM_THREADS=1 \
	        $(BIN)/python scripts/demo.py $$notebook --in-place || exit 1; \
	done

lab: $(SETUP)
	$(BIN)/jupyter lab $(QUICKSTART)

# ---- checks, the cheap ones first; pytest last, so that its summary ends the output --------------

test: lint types frontend notebooks pytest

lint: $(SETUP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(SETUP)
	$(BIN)/mypy

# Types against the record's schema, tsc, vitest, and that the committed bundle is what builds.
frontend: $(SETUP) $(STAMPS)/frontend
	$(BIN)/python widgets/scripts/schema.py --check
	cd widgets && npm run --silent check

notebooks: $(SETUP)
	$(BIN)/python -m pytest --nbval notebooks -q -p no:cacheprovider -n 2 --dist loadfile

pytest: $(SETUP) $(STAMPS)/browser
	$(BIN)/python -m pytest -n 2 --dist loadgroup --ignore=$(TUTORIALS)

# Every tutorial in a real JupyterLab, one after the other: about ten minutes, so not part of `test`.
tutorials: $(SETUP) $(STAMPS)/browser
	$(BIN)/python -m pytest $(TUTORIALS)

bench: $(SETUP)
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/kernels.py

clean:
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache
