# Everything a contributor runs. It needs Python 3.11 or newer (with pip and venv), git and make; the rest
# comes from requirements/*.lock, checked by hash, into .venv. With npm, tests run the public MCP tools as well. `make help` lists the targets.

PYTHON ?= python3
WORKERS ?= 4
TORTURE_S ?= 600
TORTURE_SEED ?=
TORTURE_CASE ?=
TORTURE_CASES ?=
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
COLLECTED := $(VENV)/.collected
COVERED := build/coverage.json
PUBLIC_TOOLS := $(VENV)/public-tools
AGENTS := $(VENV)/agents
PAGE_LINT := $(VENV)/page-lint
SITE := $(VENV)/site
CHECKED := $(wildcard src tests bench)

# A user's own Python settings must not decide what the tests see, nor that each run compiles them anew.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONDONTWRITEBYTECODE
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

.PHONY: help
help: ## this list
	@echo 'usage: make TARGET [ARGS="..."]'
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)$$/\1|\2/p' Makefile | while IFS='|' read -r target text; do \
		printf '  %-10s %s\n' "$$target" "$$text"; done

.PHONY: demo
demo: $(READY) bytecode ## watch an agent delete a project's code, and Holdfast bring it back
	@$(BIN)/holdfast demo $(ARGS)

.PHONY: test
test: $(READY) ## lint, types, import layers, the documentation site, then the whole test suite and its coverage
	@$(MAKE) --no-print-directory -j 2 lint public-tools browser site $(COLLECTED)
	@mkdir -p $(dir $(COVERED))
	$(BIN)/python -m slipcover --source src/holdfast --immediate --json --out $(COVERED) \
		-m pytest tests -p tests.support.immediate_coverage \
		-m "not torture and not agents" -n $(WORKERS) --dist worksteal $(ARGS)
	@[ -n "$(strip $(ARGS))" ] || $(BIN)/python -m tests.project.coverage $(COVERED)

.PHONY: lint
lint: $(READY) ## formatting, lint, strict types, import layers
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/mypy $(CHECKED)
	$(BIN)/lint-imports

.PHONY: format
format: $(READY) ## fix formatting and import order with ruff
	$(BIN)/ruff check --select I --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

.PHONY: bench
bench: $(READY) bytecode ## speed and size against other tools (ARGS go to the benchmark)
	$(BIN)/python -m bench $(ARGS)

# The seed is chosen here, so that the same number reaches every worker and is on the screen to repeat the run.
.PHONY: torture
torture: $(READY) bytecode ## long random campaigns: TORTURE_S=seconds, TORTURE_CASES=most of each, TORTURE_SEED=number to repeat one
	@seed='$(TORTURE_SEED)'; \
	[ -n "$$seed" ] || seed=$$($(BIN)/python -c 'import secrets; print(secrets.randbelow(2**32))'); \
	echo "torture: $(TORTURE_S) s, repeat with TORTURE_SEED=$$seed"; \
	HYPOTHESIS_PROFILE=torture TORTURE_S='$(TORTURE_S)' TORTURE_SEED="$$seed" TORTURE_CASE='$(TORTURE_CASE)' TORTURE_CASES='$(TORTURE_CASES)' \
	$(BIN)/python -m pytest tests \
		-m torture -n $(WORKERS) --dist worksteal --hypothesis-seed="$$seed" \
		-o faulthandler_timeout=$$(( $(TORTURE_S) + 300 )) $(ARGS)

# Nothing is skipped: where the agents cannot be had, this fails and says so.
.PHONY: agents
agents: $(READY) bytecode ## real agents against a stub model, each from its package (needs npm and its registry)
	@command -v npm >/dev/null 2>&1 || { echo 'error: npm not found. The agents come from its registry: install Node.js 20 or newer.' >&2; exit 1; }
	@mkdir -p $(AGENTS) && cp requirements/agents/package.json $(AGENTS)/
	npm install --prefix $(AGENTS) --no-audit --no-fund --no-package-lock
	HOLDFAST_AGENTS=$(CURDIR)/$(AGENTS) $(BIN)/python -m pytest tests/agents -m agents -n 0 $(ARGS)

.PHONY: page-lint
page-lint: $(READY) ## types and format of the web page's scripts (needs npm and its registry)
	@command -v npm >/dev/null 2>&1 || { echo 'error: npm not found. The checkers come from its registry: install Node.js 20 or newer.' >&2; exit 1; }
	@mkdir -p $(PAGE_LINT) && cp requirements/page/package.json requirements/page/tsconfig.json $(PAGE_LINT)/
	npm install --prefix $(PAGE_LINT) --no-audit --no-fund --no-package-lock
	$(PAGE_LINT)/node_modules/.bin/tsc --project $(PAGE_LINT)
	$(PAGE_LINT)/node_modules/.bin/prettier --config requirements/page/prettier.json --check 'src/holdfast/interfaces/web/page/*.js'

.PHONY: screenshots
screenshots: $(READY) bytecode ## take pictures of every view of the web page into build/screenshots (needs chromium)
	$(BIN)/python -m tests.interfaces.web.page.screenshots build/screenshots

.PHONY: reliability
reliability: $(READY) ## write docs/reliability.md from what the last campaigns found
	$(BIN)/python -m tests.torture.reliability --write

.PHONY: site
site: $(SITE)/.ready ## build the documentation site into build/site; a broken link fails
	NO_COLOR=1 $(SITE)/bin/zensical build --strict
	@$(BIN)/python -m tests.project.site build/site

.PHONY: promises
promises: $(READY) ## list each promise with the tests that prove it
	@$(BIN)/python -m tests.project.promises

.PHONY: lock
lock: $(READY) ## resolve the dependencies again and write requirements/*.lock
	sh requirements/lock.sh $(BIN)/uv $(ARGS)

.PHONY: clean
clean: ## remove everything made here, .venv included
	rm -rf $(VENV) build dist .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find $(CHECKED) -type d -name __pycache__ -prune -exec rm -rf {} +

# Where they cannot be had, the script says why, so does the run, and the next one tries again.
.PHONY: public-tools
public-tools: $(READY)
	@if [ ! -e $(PUBLIC_TOOLS)/ready ] || [ -n "$$(find requirements/public-tools -newer $(PUBLIC_TOOLS)/ready)" ]; then \
		sh requirements/public-tools/install.sh $(CURDIR)/$(PUBLIC_TOOLS); fi

# The page is tried in Debian's Chromium. Where it cannot be installed, the run says so and everything else is tested.
.PHONY: browser
browser:
	@sh requirements/chromium.sh

# Compiled once here, so that neither a timing nor each of the thousand processes that tests start includes the compiler,
# even where Python may not write bytecode.
.PHONY: bytecode
bytecode: $(READY)
	@$(BIN)/python -m compileall -q $(CHECKED)

# pytest compiles tests in its own way. Once, while mypy has the other core: in a fresh clone each worker would do it.
# Whatever fails here fails in the run, which says why.
$(COLLECTED): $(READY) | bytecode
	@$(BIN)/python -m pytest tests --collect-only -p no:cacheprovider >/dev/null 2>&1 || true
	@touch $@

# uv does the installing, because it is quick. It does not read pip's own configuration: where an index is reached
# only through that (a mirror in pip.conf), pip installs the same files from the same lock instead.
$(READY): pyproject.toml requirements/setup.lock requirements/dev.lock
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
		echo 'error: $(PYTHON) not found. Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: Holdfast needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
		     'Name a newer one: make PYTHON=/path/to/python3' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo 'error: $(PYTHON) cannot make virtual environments. Install its venv package (on Debian: python3-venv).' >&2; exit 1; }
	@command -v git >/dev/null 2>&1 || { \
		echo 'error: git not found. The tests compare with real git: install it.' >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@rm -f $@
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: -r requirements/setup.lock
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes --compile-bytecode requirements/dev.lock || { \
		echo 'uv could not install; pip tries the same lock' >&2; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock; }
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --offline --no-deps --no-build-isolation --editable .
	@touch $@

# Its own environment: what builds the site is never imported with the package.
$(SITE)/.ready: requirements/site.lock $(READY)
	@$(BIN)/python -m venv --clear $(SITE)
	@$(BIN)/uv pip sync --quiet --python $(SITE)/bin/python --require-hashes requirements/site.lock || { \
		echo 'uv could not install; pip tries the same lock' >&2; \
		$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/site.lock; }
	@touch $@
