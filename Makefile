# Targets for people and CI. `make demo` and `make test` need only Python 3.11+, make and a package registry.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
BENCH   := .venv-bench
JOEYNMT := .venv-bench-joeynmt
LIBRE   := .venv-libretranslate
MODEL   := runs/demo

.PHONY: setup demo test test-slow test-docs check docs faults faults-night lab distributed browser formats mutants bench bench-studies bench-serve clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "heedful requires Python 3.11 or newer. Select one with: make setup PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[plot,tensorboard,export,zstd,serve,docs,dev]'
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

# Fault injection: docs/explanation/reliability.md. HEEDFUL_RECORD=1 records the results there.
faults: setup
	$(BIN)/pytest -n 2 -m faults tests/faults

faults-night: setup
	HEEDFUL_FAULTS=night HEEDFUL_RECORD=1 $(BIN)/pytest -n 2 -m faults tests/faults

# The experiments behind the paper's claims: docs/results/lab.md. QUICK=1 only checks that they run.
lab: setup
	$(BIN)/heedful lab all $(if $(QUICK),--quick --out runs/lab-quick,--out runs/lab)

# Distributed training with several processes: docs/how-to/several-gpus.md.
distributed: setup
	$(BIN)/pytest -m distributed tests/distributed

# Web pages in chromium, which is installed if possible; otherwise the tests are skipped with a message.
browser: setup
	@command -v chromium > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && \
	  { apt-get install -qq -y --no-install-recommends chromium > /dev/null 2>&1 || \
	    { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } > /dev/null 2>&1; }; } || \
	  echo "chromium is not installed and could not be installed"
	$(BIN)/pytest -m browser -rs tests/browser

# Exported packages in the real LibreTranslate (docs/how-to/deployment.md), and the server behind a real nginx
# (docs/how-to/reverse-proxy.md). Tests of a program that cannot be installed are skipped with a message.
formats: setup $(LIBRE)/.ready
	@[ -x /usr/sbin/nginx ] || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && \
	  { apt-get install -qq -y --no-install-recommends nginx-light > /dev/null 2>&1 || \
	    { apt-get update -qq && apt-get install -qq -y --no-install-recommends nginx-light; } > /dev/null 2>&1; }; } || \
	  echo "nginx is not installed and could not be installed"
	$(BIN)/pytest -m formats -rs tests/formats

# LibreTranslate's pinned dependencies conflict with ours, so it gets its own environment.
$(LIBRE)/.ready: Makefile
	$(PYTHON) -m venv $(LIBRE)
	@$(LIBRE)/bin/pip install --quiet --disable-pip-version-check libretranslate==1.9.6 libretranslatepy==2.1.4 && touch $@ || \
	  { echo "skipped, because it cannot be installed: libretranslate"; rm -f $(LIBRE)/bin/libretranslate; }

# Mutation testing of attention, loss, search and the manifest: CONTRIBUTING.md.
mutants: setup
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[mutants]'
	rm -rf mutants
	OMP_NUM_THREADS=1 $(BIN)/python tests/run_mutants.py

# Comparison with other toolkits: docs/results/performance.md. One that cannot be installed is skipped with a message.
# DATA_ROOT=DIR: train on Multi30k instead of the built-in corpus. MODEL=RUN: decode with this model instead of the
# demo's (with DATA_ROOT, Multi30k's test set). QUICK=1: a smoke test of training that writes nothing.
bench: $(BENCH)/.ready $(JOEYNMT)/.ready
	BENCH_JOEYNMT=$(JOEYNMT)/bin/python $(BENCH)/bin/python benchmarks/training_speed.py \
	  $(if $(DATA_ROOT),--data-root $(DATA_ROOT)) $(if $(QUICK),--quick)
	$(BENCH)/bin/python benchmarks/time_to_loss.py $(if $(QUICK),--quick)
ifndef QUICK
	[ -e $(MODEL) ] || $(BENCH)/bin/heedful demo --out $(MODEL)
	$(BENCH)/bin/python benchmarks/decoding_speed.py --model $(MODEL) \
	  $(if $(filter-out runs/demo,$(MODEL)),$(if $(DATA_ROOT),--data-root $(DATA_ROOT)))
	$(BENCH)/bin/python benchmarks/startup_time.py $(MODEL)
	$(BENCH)/bin/python benchmarks/performance_page.py
endif

# Measurements of heedful alone: growth with sentence and corpus size, spin counts, quality by precision. Over an hour.
bench-studies: $(BENCH)/.ready
	$(BENCH)/bin/python benchmarks/length_and_corpus_scaling.py
	$(BENCH)/bin/python benchmarks/openmp_spin.py
	$(BENCH)/bin/python benchmarks/bf16_quality.py --out runs/precision $(if $(DATA_ROOT),--data-root $(DATA_ROOT))
	$(BENCH)/bin/python benchmarks/performance_page.py

# Servers under load, compared with LibreTranslate if `make formats` has installed it: docs/results/performance.md.
bench-serve: setup
	[ -e $(MODEL) ] || $(BIN)/heedful demo --out $(MODEL)
	$(BIN)/python benchmarks/serving_load.py --model $(MODEL)
	$(BIN)/python benchmarks/performance_page.py

$(BENCH)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[plot]'
	@for peer in 'transformers accelerate' x-transformers ctranslate2; do \
	  $(BENCH)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt $$peer || \
	    echo "skipped, because it cannot be installed: $$peer"; \
	done
	@$(BENCH)/bin/python -m compileall -q src || true
	@touch $@

# JoeyNMT needs an older protobuf, so it gets its own environment with the same torch.
$(JOEYNMT)/.ready: constraints.txt
	$(PYTHON) -m venv $(JOEYNMT)
	@$(JOEYNMT)/bin/pip install --quiet --disable-pip-version-check joeynmt==2.3.0 importlib_metadata \
	  $$(grep -E '^(torch|numpy)==' constraints.txt) || echo "skipped, because it cannot be installed: joeynmt"
	@touch $@

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) $(BENCH) $(JOEYNMT) $(LIBRE) docs/_build mutants .mypy_cache .ruff_cache .pytest_cache
