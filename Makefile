# make run: install and run the embedded default.  make test: install the test extras and run the suite.

PYTHON ?= $(shell for candidate in python3 python3.13 python3.12 python3.11 python3.14; do \
	command -v $$candidate >/dev/null 2>&1 && $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$candidate; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)

ifdef UV
INSTALL := $(UV) pip install --quiet --python $(BIN)/python
else
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
endif

.PHONY: run install test check lock benchmarks docs clean

run: install
	@$(BIN)/auxeval run --yes

install: $(VENV)/.installed

test: $(VENV)/.installed-test
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(VENV)/.installed-test
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# BENCH_PYTHON: a Python that also has the extra bench (3.12 or 3.13 for all peers); BENCH_ARGS: --quick, --full, --only …
BENCH_PYTHON ?= $(BIN)/python
benchmarks: $(VENV)/.installed-test
	@$(BENCH_PYTHON) -m benchmarks $(BENCH_ARGS)

# What pages are made from the code: references, and the outputs of examples.
docs: $(VENV)/.installed-test
	@$(BIN)/python docs/generate_reference.py
	@$(BIN)/python docs/refresh_examples.py

# The virtual environment: uv where present, else the standard library's venv.
$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then echo "auxeval needs Python 3.11 or newer: none of python3, python3.11 … python3.14 is one (set PYTHON=…)" >&2; exit 2; fi
ifdef UV
	@$(UV) venv --quiet --allow-existing --python "$$(command -v $(PYTHON))" $(VENV)
else
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { v=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	echo "auxeval needs Python's venv module: install the package python$$v-venv (Debian, Ubuntu: apt-get install python$$v-venv)" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV)
endif

$(VENV)/.installed: $(BIN)/python requirements.lock pyproject.toml
	@$(INSTALL) --require-hashes -r requirements.lock
	@$(INSTALL) --no-deps -e .
	@touch $@

$(VENV)/.installed-test: $(BIN)/python .ci/requirements-test.lock pyproject.toml
	@$(INSTALL) --require-hashes -r .ci/requirements-test.lock
	@$(INSTALL) --no-deps -e .
	@touch $@ $(VENV)/.installed

# Both locks are pinned, hashed and free of addresses, so that uv and plain pip can install them.
LOCK := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --quiet
lock:
	@$(LOCK) --extra math -o requirements.lock
	@$(LOCK) --extra math --extra test -o .ci/requirements-test.lock

clean:
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
