# The same verbs for people and CI. `make demo` and `make test` need only Python 3.11+, make and a package registry.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: setup demo test test-slow check faults faults-night clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "heedful needs Python 3.11 or newer; choose one with: make setup PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[plot,tensorboard,dev]'
	@$(BIN)/python -m compileall -q src || true
	@touch $(READY)

demo: setup
	$(BIN)/heedful demo --out runs/demo

test: setup
	$(BIN)/pytest -n 2 -m 'not slow and not faults' tests

test-slow: setup
	$(BIN)/pytest -m slow tests

# Death, damage and malice: docs/reliability.md. HEEDFUL_RECORD=1 writes the outcome there.
faults: setup
	$(BIN)/pytest -n 2 -m faults tests/faults

faults-night: setup
	HEEDFUL_FAULTS=night HEEDFUL_RECORD=1 $(BIN)/pytest -n 2 -m faults tests/faults

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) runs .mypy_cache .ruff_cache .pytest_cache
