# Each target installs its own prerequisites. PYTHON sets the interpreter, ARGS the arguments of pytest or a benchmark:
#   make test PYTHON=python3.12 ARGS="-k voronoi"
#   make bench ARGS="--compare docs/results/peers.json"
#   make fuzz MINUTES=10 ARGS=models

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo test test-gpu test-recipes fuzz lint format bench bench-gpu scaling wheel crash clean

PYTHON ?= python3
# Each interpreter has its own environment, so that switching between them rebuilds nothing.
VENV := .venv$(if $(filter-out python3,$(PYTHON)),-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
CPP := $(shell find cpp -name '*.[ch]pp' -o -name '*.h')
BUILD := pyproject.toml CMakeLists.txt $(CPP)

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(VENV)/.installed-plot  ## run the demo
	@$(BIN)/isokern demo

test: $(VENV)/.installed-test  ## run the tests and doctests
	@$(BIN)/pytest -n auto $(ARGS)

N ?= 50
crash: $(VENV)/.installed-test  ## kill and resume streams N times, and fill their disk; SEED=1 repeats a run
	@$(BIN)/python tests/crash.py $(N) $(SEED)

# PyTorch is installed in a separate environment, so that nothing else can depend on it.
test-gpu:  ## run the device tests with PyTorch
	@$(MAKE) --no-print-directory VENV=$(VENV)-gpu $(VENV)-gpu/.installed-torch
	@$(VENV)-gpu/bin/pytest $(or $(ARGS),tests/test_devices.py tests/test_device_blocks.py tests/test_cli_devices.py)

test-recipes: $(VENV)/.installed-recipes  ## run the code of the Spark and Ray recipes (installs about 1 GB)
	@$(BIN)/pytest docs/recipes $(ARGS)

fuzz: $(VENV)/.installed-test  ## read damaged and forged files for MINUTES (default 5); keeps those that fail in fuzz-found
	@PYTHONPATH=tests $(BIN)/python -m fuzz --minutes $(or $(MINUTES),5) $(ARGS)

lint: $(VENV)/.installed-lint  ## check style, types and import layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	@$(BIN)/clang-format --dry-run -Werror $(CPP)

format: $(VENV)/.installed-lint  ## format the sources
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	@$(BIN)/clang-format -i $(CPP)

# Only complete runs update the pages in docs/results; with ARGS, output goes where ARGS says.
bench: $(VENV)/.installed-bench  ## benchmark against other libraries; writes docs/results/peers.md and .json
	@$(BIN)/python benchmarks/peers.py $(or $(ARGS),--save docs/results/peers)

bench-gpu:  ## benchmark the map on PyTorch's CPU device and on a GPU, if there is one, against torch.cdist
	@$(MAKE) --no-print-directory VENV=$(VENV)-gpu $(VENV)-gpu/.installed-torch
	@$(VENV)-gpu/bin/python benchmarks/devices.py $(ARGS)

scaling: $(VENV)/.installed-bench  ## measure how time and memory grow; writes docs/results/scaling.md, .json and .png
	@$(BIN)/python benchmarks/scaling.py $(or $(ARGS),--save docs/results/scaling)

wheel: $(VENV)/.tools  ## build a wheel into dist/
	$(PIP) wheel --no-deps --wheel-dir dist .

clean:  ## remove everything that these targets create
	rm -rf build dist fuzz-found .venv .venv-* .*_cache .hypothesis

# Build tools stay installed and builds are not isolated, so that recompiling only compiles what changed.
$(VENV)/.tools: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "isokern needs Python 3.11 or newer")'
	@echo "Preparing $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])' \
	    | xargs $(PIP) install cmake ninja
	@touch $@

INSTALL = $(PIP) install --no-build-isolation --config-settings=build-dir=$(VENV)/build --editable

$(VENV)/.installed: $(VENV)/.tools $(BUILD)
	@echo "Building isokern"
	@$(INSTALL) .
	@touch $@

$(VENV)/.installed-%: $(VENV)/.tools $(BUILD)
	@echo "Building isokern for $*"
	@$(INSTALL) '.[$*]'
	@touch $@ $(VENV)/.installed

# isotree is compiled from source in this environment.
$(VENV)/.installed-bench: $(VENV)/.bench-tools
$(VENV)/.bench-tools: $(VENV)/.tools
	@$(PIP) install cython numpy setuptools wheel
	@touch $@

$(VENV)/.installed-torch: $(VENV)/.installed-test
	@$(PIP) install torch==2.13.0
	@touch $@
