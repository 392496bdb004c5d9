# The same verbs for people and CI. `make demo` and `make test` need only Python 3.11+, make and a package registry.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
BENCH   := .venv-bench
JOEYNMT := .venv-bench-joeynmt
LIBRE   := .venv-libretranslate
MODEL   := runs/demo

.PHONY: setup demo test test-slow test-docs check docs faults faults-night lab distributed browser formats mutants bench bench-serve clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "heedful needs Python 3.11 or newer; choose one with: make setup PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[plot,tensorboard,export,serve,docs,dev]'
	@$(BIN)/python -m compileall -q src || true
	@touch $(READY)

demo: setup
	$(BIN)/heedful demo --out runs/demo

test: setup
	$(BIN)/pytest -n 2 -m 'not slow and not faults and not formats and not browser and not distributed and not docs' tests

test-slow: setup
	$(BIN)/pytest -m slow tests

# The documentation site, in docs/_build/html. A warning is an error.
docs: setup
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html
	@echo "docs/_build/html/index.html"

# Run every command and code block of README, tutorials and how-to guides.
test-docs: setup
	$(BIN)/pytest -n 2 -m docs tests/test_docs_code_blocks.py

# Death, damage and malice: docs/explanation/reliability.md. HEEDFUL_RECORD=1 writes the outcome there.
faults: setup
	$(BIN)/pytest -n 2 -m faults tests/faults

faults-night: setup
	HEEDFUL_FAULTS=night HEEDFUL_RECORD=1 $(BIN)/pytest -n 2 -m faults tests/faults

# The experiments behind the paper's claims: docs/results/lab.md. QUICK=1: to see that they run.
lab: setup
	$(BIN)/heedful lab all $(if $(QUICK),--quick --out runs/lab-quick,--out runs/lab)

# Several processes on one run: docs/how-to/own-data.md.
distributed: setup
	$(BIN)/pytest -m distributed tests/distributed

# Pages of ours in chromium, which is installed where that can be done; elsewhere the tests skip and say so.
browser: setup
	@command -v chromium > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && \
	  { apt-get install -qq -y --no-install-recommends chromium > /dev/null 2>&1 || \
	    { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } > /dev/null 2>&1; }; } || \
	  echo "chromium is not installed, and could not be"
	$(BIN)/pytest -m browser -rs tests/browser

# Packages of ours in the real LibreTranslate (docs/how-to/deployment.md), and the server behind a real nginx
# (docs/how-to/reverse-proxy.md). Where one of them does not install, its tests skip and say so.
formats: setup $(LIBRE)/.ready
	@[ -x /usr/sbin/nginx ] || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && \
	  { apt-get install -qq -y --no-install-recommends nginx-light > /dev/null 2>&1 || \
	    { apt-get update -qq && apt-get install -qq -y --no-install-recommends nginx-light; } > /dev/null 2>&1; }; } || \
	  echo "nginx is not installed, and could not be"
	$(BIN)/pytest -m formats -rs tests/formats

# Its pins and ours do not go together: an environment of its own.
$(LIBRE)/.ready: Makefile
	$(PYTHON) -m venv $(LIBRE)
	@$(LIBRE)/bin/pip install --quiet --disable-pip-version-check libretranslate==1.9.6 libretranslatepy==2.1.4 && touch $@ || \
	  { echo "left out, because it does not install: libretranslate"; rm -f $(LIBRE)/bin/libretranslate; }

# One change at a time in attention, loss, search and the manifest: does a test notice? CONTRIBUTING.md.
mutants: setup
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[mutants]'
	rm -rf mutants
	OMP_NUM_THREADS=1 $(BIN)/python tests/run_mutants.py

# Beside the peers, each as it installs: docs/results/performance.md. A peer that does not install is left out, and said so.
# DATA_ROOT=DIR: train on Multi30k instead of the built-in pair. MODEL=RUN: decode with this model instead of the
# demo's (with DATA_ROOT, Multi30k's test set). QUICK=1: a smoke run of training that writes nothing.
bench: $(BENCH)/.ready $(JOEYNMT)/.ready
	BENCH_JOEYNMT=$(JOEYNMT)/bin/python $(BENCH)/bin/python benchmarks/training_speed.py \
	  $(if $(DATA_ROOT),--data-root $(DATA_ROOT)) $(if $(QUICK),--quick)
	$(BENCH)/bin/python benchmarks/time_to_loss.py $(if $(QUICK),--quick)
ifndef QUICK
	[ -e $(MODEL) ] || $(BENCH)/bin/heedful demo --out $(MODEL)
	$(BENCH)/bin/python benchmarks/decoding_speed.py --model $(MODEL) \
	  $(if $(filter-out runs/demo,$(MODEL)),$(if $(DATA_ROOT),--data-root $(DATA_ROOT)))
	$(BENCH)/bin/python benchmarks/scaling.py
	$(BENCH)/bin/python benchmarks/startup_time.py $(MODEL)
	$(BENCH)/bin/python benchmarks/openmp_spin.py
	$(BENCH)/bin/python benchmarks/performance_page.py
endif

# Servers under load, beside LibreTranslate where `make formats` has installed it: docs/results/performance.md.
bench-serve: setup
	[ -e $(MODEL) ] || $(BIN)/heedful demo --out $(MODEL)
	$(BIN)/python benchmarks/serving_load.py --model $(MODEL)
	$(BIN)/python benchmarks/performance_page.py

$(BENCH)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[plot]'
	@for peer in 'transformers accelerate' x-transformers ctranslate2; do \
	  $(BENCH)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt $$peer || \
	    echo "left out, because it does not install: $$peer"; \
	done
	@$(BENCH)/bin/python -m compileall -q src || true
	@touch $@

# Its protobuf is older than ours: an environment of its own, with the same torch.
$(JOEYNMT)/.ready: constraints.txt
	$(PYTHON) -m venv $(JOEYNMT)
	@$(JOEYNMT)/bin/pip install --quiet --disable-pip-version-check joeynmt==2.3.0 importlib_metadata \
	  $$(grep -E '^(torch|numpy)==' constraints.txt) || echo "left out, because it does not install: joeynmt"
	@touch $@

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) $(BENCH) $(JOEYNMT) $(LIBRE) docs/_build runs mutants .mypy_cache .ruff_cache .pytest_cache
