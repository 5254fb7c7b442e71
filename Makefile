# `make run` and `make test` need only Python 3.11+ and make; everything else is set up here.
PYTHON ?= python3
VENV := .venv
LAUNCHERS := .venv-launchers
FOCUS := .venv-focus
BIN := $(VENV)/bin

.PHONY: run test test-providers lint bench venv launchers focus lock messages password screenshots

run: $(VENV)/.runtime
	@exec $(BIN)/python manage.py up

test: $(VENV)/.development
	$(BIN)/python -m pytest -n logical --maxprocesses=4 --dist=loadfile --no-loadscope-reorder

# Every provider's adapter against its contract; each is named at the end.
test-providers: $(VENV)/.development
	$(BIN)/python -m pytest tests/fleet/providers

lint: $(VENV)/.development
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy .
	$(BIN)/lint-imports
	$(BIN)/python -m tests.lint

bench: $(VENV)/.development
	$(BIN)/python -m tests.bench

venv: $(VENV)/.development

# Real launchers for the tests of printed scripts: some hundred megabytes, and no part of the product.
launchers: $(LAUNCHERS)/.ready

# The validator of FOCUS files, which needs other versions of much: only the tests of exports run it.
focus: $(FOCUS)/.ready

$(VENV)/.runtime: requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.development: requirements-dev.lock $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

$(LAUNCHERS)/.ready: requirements-launchers.txt
	test -x $(LAUNCHERS)/bin/python || $(PYTHON) -m venv $(LAUNCHERS)
	$(LAUNCHERS)/bin/python -m pip install --quiet --disable-pip-version-check setuptools wheel -r requirements-launchers.txt
	DS_BUILD_OPS=0 $(LAUNCHERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation deepspeed==0.19.8
	@touch $@

$(FOCUS)/.ready: requirements-focus.lock
	test -x $(FOCUS)/bin/python || $(PYTHON) -m venv $(FOCUS)
	$(FOCUS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-focus.lock
	@touch $@

# Needs uv; writes no index address into the files.
lock:
	uv pip compile pyproject.toml --extra oidc --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -o requirements.lock
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -c requirements.lock -q -o requirements-dev.lock
	uv pip compile requirements-focus.in --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q -o requirements-focus.lock

messages: $(VENV)/.development
	$(BIN)/python manage.py messages

password: $(VENV)/.runtime
	@$(BIN)/python manage.py password

screenshots: $(VENV)/.development
	$(BIN)/python -m tests.screenshots
