# Two commands: `make demo` and `make test`. Everything else is for people who change the code.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The stamp holds the folder and the Python: a moved folder, or another PYTHON asked for, makes the environment anew.
ASKED := $(if $(filter file,$(origin PYTHON)),,$(PYTHON))
STALE := $(shell test ! -e $(STAMP) || { read -r folder; read -r python; test "$$folder" = "$$(pwd)" && \
  { test -z "$(ASKED)" || test "$(ASKED)" = "$$python"; }; } <$(STAMP) || echo again)

.PHONY: demo test test-shared test-real soak check lock clean again

demo: $(STAMP) ## Walk the session lifecycle between real processes, and say what was verified.
	$(BIN)/aip-hermes demo $(DEMO)

test: $(STAMP) ## Run the suite.
	$(BIN)/python -m pytest -q -n auto --dist worksteal $(TESTS)

# What is written once for both engines is tested once on each.
SHARED := $(addprefix tests/contract/test_runtime_,$(addsuffix .py,fence fence_exits fence_contract crash decisions \
  approvals_quorum approvals_policy queue queue_leases execution messages cancel_races checks lifecycle))
SHARED += $(addprefix tests/contract/test_session_db_,$(addsuffix .py,compression conversation creating ends forests \
  leases lineage listing messages odd_values portability prune removal rewriting search search_calls settings titles usage))

test-shared: $(STAMP) ## The tests of the runtime and of SessionDB again, on a PostgreSQL that the tests start.
	AIP_TEST_STORE=postgres $(BIN)/python -m pytest -q -n auto --dist worksteal $(SHARED)

test-real: $(STAMP) ## The same against a real hermes-agent, which is installed into .venv-hermes and started by the tests.
	AIP_HERMES_REAL=1 $(BIN)/python -m pytest -q tests/real $(TESTS)

soak: $(STAMP) ## Kill a server under 20,000 mixed actions, walkers of a lifecycle, endpoints in their turns; check all. Shorter: SOAK=500.
	$(BIN)/python -m tests.soak $(SOAK)

check: $(STAMP) ## What CI checks besides the tests.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m aip_hermes.contract.reference --check

lock: ## Renew requirements.lock (hashes, no addresses) from the ranges in pyproject.toml.
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet pip-tools
	$(VENV)-lock/bin/pip-compile --quiet --strip-extras --generate-hashes --allow-unsafe --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
	  --extra dev --output-file requirements.lock pyproject.toml
	rm -rf $(VENV)-lock

clean: ## Remove what the other targets made.
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(STAMP): pyproject.toml requirements.lock $(STALE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, $(PYTHON) is %d.%d; try: make $(MAKECMDGOALS) PYTHON=python3.12" % sys.version_info[:2])'
	@echo "Installing into $(VENV) (once, about a minute) ..." >&2
	@$(if $(STALE),false,$(BIN)/python -m pip --version) >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@{ pwd; echo "$(PYTHON)"; } >$@
