# Needs only python 3.11 or newer with pip, and make. Everything else goes into .venv.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
STAMP := .venv/.installed
WORKERS ?= 2
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

export MEM0_TELEMETRY := False
export ANONYMIZED_TELEMETRY := False

.PHONY: help demo test test-slow test-all check format examples lock clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-10s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml adapters/mem0/pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python -e '.[dev,postgres]' -e adapters/mem0 \
	  || $(BIN)/python -m pip install --quiet -e '.[dev,postgres]' -e adapters/mem0
	touch $@

.venv: $(STAMP) ## Create the environment

demo: $(STAMP) ## Two columns over real Mem0 stores: alone, and with neighbours
	$(BIN)/collab demo

test: $(STAMP) ## The tests, in a few minutes
	$(PYTEST)

test-slow: $(STAMP) ## Only what takes long or starts a server
	$(PYTEST) -m slow

test-all: $(STAMP) ## Everything
	$(PYTEST) -m "slow or not slow"

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
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist build
