# The two commands of the README: `make demo` and `make test`. `make help` lists the rest.
# Every target makes .venv when it is missing or stale; PYTHON=python3.12 chooses the interpreter.

PYTHON ?= python3
export PYTHON
# Compiled modules are kept, or every process compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
PY := .venv/bin/python
FOR ?=
PORT ?=
# Tests of one file share servers and process trees, so a file stays in one process; half of the time they wait, so five
# processes keep two cores busy. tests/conftest.py puts the slow files first.
SIDE_BY_SIDE := --dist loadfile --no-loadscope-reorder
# Code that decides: it has no clock, file or network, and so have its tests.
UNIT := $(wildcard $(addprefix tests/,config conformance discover engine fetch frontier index learn parse properties \
  refresh serve test_pricing.py test_text.py test_timeutil.py))
# Simulations of days, which take a third of the time of all of these.
SIMULATIONS := $(addprefix tests/,engine/test_shocks.py engine/test_recrawl.py engine/scheduling/test_refresh.py \
  engine/scheduling/test_poll_parity.py engine/coordinator/test_trap_filter.py frontier/test_traps.py)

.PHONY: help setup setup-run demo up quick test check lint types contracts unit docs prove prove-soak audit sbom dist \
  fuzz lock clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12
	@ls bench/*.py | sed -E 's|bench/(.*)\.py|bench-\1|' | expand -t 12

setup: ## create .venv with everything for development
	@tools/venv dev

setup-run:
	@tools/venv run

demo: setup-run ## crawl and search a synthetic web and our docs on loopback; PORT=8080, FOR=120s stops it
	@.venv/bin/vedette demo $(if $(PORT),--port $(PORT)) $(if $(FOR),--for $(FOR))

up: setup-run ## crawl real sites: SITES="https://example.org/ …" CONTACT=you@example.org OPTIONS="--allow-private …"
	@.venv/bin/vedette up $(SITES) $(if $(CONTACT),--contact $(CONTACT)) $(OPTIONS)

quick: setup ## check, and test what needs no other process (under 2 minutes on 2 cores)
	@$(MAKE) --no-print-directory -j 2 -O unit types contracts lint

test: check ## check, then run every test (docs/results/tests.md says how long it takes)
	@tools/programs
	$(PY) -m pytest $(SIDE_BY_SIDE) -n 5 --ignore tests/contracts --durations 10

check: setup ## format, lint, strict types, import contract, purity
	@$(MAKE) --no-print-directory -j 2 -O types lint contracts

lint:
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/lint-imports --no-cache

types:
	.venv/bin/mypy

contracts:
	$(PY) -m pytest -q tests/contracts

unit:
	VEDETTE_QUICK=1 $(PY) -m pytest -q $(SIDE_BY_SIDE) -n 2 $(addprefix --ignore ,$(SIMULATIONS)) $(UNIT)

docs: setup ## build the documentation site in build/site
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet

prove: setup ## every test at full size: more fuzzing, more kills, larger webs, fresh interpreters (hours)
	@tools/programs
	VEDETTE_PROVE=1 $(PY) -m pytest --timeout 14400 --durations 10

prove-soak: setup ## a week of fast time with every fault, then audits; DAYS=0.3 for a short form (3 minutes)
	$(PY) -m tests.soak --days $(or $(DAYS),7)

bench-%: setup ## run a benchmark; prints a table, then one JSON object as the last line
	@test -f bench/$(subst -,_,$*).py || { echo "There is no bench/$(subst -,_,$*).py; choose one of: $$(ls bench/*.py | xargs -n1 basename | sed 's/\.py//' | tr '\n' ' ')" >&2; exit 2; }
	@$(PY) bench/$(subst -,_,$*).py

audit: ## check pinned dependencies for known vulnerabilities: tools/advisories.json, or ONLINE=1 for osv.dev
	@tools/venv tools
	@.venv-tools/bin/python tools/audit.py $(if $(ONLINE),--online)

sbom: setup-run ## write CycloneDX bills of materials of the wheel and the container's environment to dist/
	@tools/venv tools
	@$(PY) tools/sbom.py

dist: setup ## build wheel and source archive twice, compare their bytes, and write dist/SHA256SUMS
	@$(PY) tools/build.py

fuzz: setup ## fuzz the parsers of foreign input: TARGET="query pdf …" RUNS=100000 KEEP=1
	@tools/venv tools
	@$(PY) tools/fuzz.py $(TARGET) $(if $(RUNS),--runs $(RUNS)) $(if $(KEEP),--keep)

lock: ## update all pinned dependencies to their newest versions
	@test -x .venv-peers/bin/uv || { $(PYTHON) -m venv .venv-peers && .venv-peers/bin/pip install --quiet uv; }
	.venv-peers/bin/uv pip compile --quiet --upgrade --universal --generate-hashes --python-version 3.11 --custom-compile-command "make lock" \
	  pyproject.toml --group build -o requirements.lock
	.venv-peers/bin/uv pip compile --quiet --upgrade --universal --generate-hashes --python-version 3.11 --custom-compile-command "make lock" \
	  pyproject.toml --group dev -c requirements.lock -o requirements-dev.lock
	.venv-peers/bin/uv pip compile --quiet --upgrade --universal --generate-hashes --python-version 3.11 --custom-compile-command "make lock" \
	  --group pyproject.toml:tools -o requirements-tools.lock

clean: ## remove everything the other targets created
	rm -rf .venv .venv-peers .venv-tools demo-data bench-data dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src -name "*.so" -delete
	rm -f src/vedette/compiled.txt
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
