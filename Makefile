# Two commands matter: `make run` starts the product on a fresh machine, `make test` tries all of it.
SHELL := /bin/bash
UV := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
RUN := $(UV) run --frozen

.PHONY: run check test pictures faults bench format setup browser

run: setup
	@$(RUN) waiton serve --demo

# Everything a fresh machine with Python 3.11 or newer lacks: uv, a virtual environment, the package.
setup:
	@command -v uv >/dev/null 2>&1 || test -x .tools/bin/uv || \
	  (python3 -m venv .tools && .tools/bin/pip install --quiet --disable-pip-version-check uv)
	@$(UV) sync --frozen --quiet --compile-bytecode

# Format, lint, types, imports, quick tests: under a minute.
check: setup
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) pyright
	$(RUN) lint-imports
	$(RUN) pytest -q -m "not slow and not browser and not postgres" tests/architecture tests/language tests/engine

# What the browser tests drive: Debian's Chromium, where no other is there.
browser:
	@command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || \
	  (apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium) >/dev/null || true

test: setup browser
	WAITON_BROWSER=required $(RUN) pytest tests

# The guide's pictures, made anew by the browser tests.
pictures: setup browser
	WAITON_BROWSER=required $(RUN) pytest -q --pictures --timeout=300 tests/web/test_pictures.py tests/web/test_chat_pictures.py

# Two hundred kills at random moments under load.
faults: setup
	WAITON_KILLS=200 $(RUN) pytest tests/faults --timeout=3600

bench: setup
	$(RUN) python -m tests.bench

format: setup
	$(RUN) ruff format .
	$(RUN) ruff check --fix .
