# Each word prepares what it needs. PYTHON chooses the interpreter, ARGS gives arguments to pytest or a benchmark:
#   make test PYTHON=python3.12 ARGS="-k voronoi"
#   make bench ARGS="--compare docs/results/peers.json"

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo test test-gpu test-recipes lint format bench bench-gpu scaling wheel clean

PYTHON ?= python3
# Another interpreter has another environment, so that going to and fro rebuilds nothing.
VENV := .venv$(if $(filter-out python3,$(PYTHON)),-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
CPP := $(shell find cpp -name '*.[ch]pp' -o -name '*.h')
BUILD := pyproject.toml CMakeLists.txt $(CPP)

help:  ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(VENV)/.installed-plot  ## show isokern at work
	@$(BIN)/isokern demo

test: $(VENV)/.installed-test  ## run the tests and the examples in docstrings
	@$(BIN)/pytest -n auto $(ARGS)

# PyTorch has an environment of its own, so that nothing else ever depends on it.
test-gpu:  ## run the tests of devices with PyTorch
	@$(MAKE) --no-print-directory VENV=$(VENV)-gpu $(VENV)-gpu/.installed-torch
	@$(VENV)-gpu/bin/pytest $(or $(ARGS),tests/test_devices.py tests/test_device_blocks.py tests/test_cli_devices.py)

test-recipes: $(VENV)/.installed-recipes  ## run the code of the pages on Spark and Ray (which takes a gigabyte)
	@$(BIN)/pytest docs/recipes $(ARGS)

lint: $(VENV)/.installed-lint  ## check style, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	@$(BIN)/clang-format --dry-run -Werror $(CPP)

format: $(VENV)/.installed-lint  ## put the sources in form
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	@$(BIN)/clang-format -i $(CPP)

# Only whole runs replace the pages in the docs: with ARGS nothing is written that they do not ask for.
bench: $(VENV)/.installed-bench  ## time the work beside the peers, into docs/results/peers.md and .json
	@$(BIN)/python benchmarks/peers.py $(or $(ARGS),--save docs/results/peers)

bench-gpu:  ## time the map on PyTorch's CPU device and a GPU, where there is one, beside torch.cdist
	@$(MAKE) --no-print-directory VENV=$(VENV)-gpu $(VENV)-gpu/.installed-torch
	@$(VENV)-gpu/bin/python benchmarks/devices.py $(ARGS)

scaling: $(VENV)/.installed-bench  ## measure how cost grows, into docs/results/scaling.md, .json and .png
	@$(BIN)/python benchmarks/scaling.py $(or $(ARGS),--save docs/results/scaling)

wheel: $(VENV)/.tools  ## build a wheel into dist/
	$(PIP) wheel --no-deps --wheel-dir dist .

clean:  ## remove everything that these words make
	rm -rf build dist .venv .venv-* .*_cache .hypothesis

# The build tools stay in the environment: compiling again after a change then takes only what changed.
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

# isotree is compiled from source, with what the environment has.
$(VENV)/.installed-bench: $(VENV)/.bench-tools
$(VENV)/.bench-tools: $(VENV)/.tools
	@$(PIP) install cython numpy setuptools wheel
	@touch $@

$(VENV)/.installed-torch: $(VENV)/.installed-test
	@$(PIP) install torch==2.13.0
	@touch $@
