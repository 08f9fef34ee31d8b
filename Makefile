# The two commands a newcomer needs: `make crawl` and `make test`. Everything is set up in .venv on first use.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SEEDS  ?=
INTO   ?= crawls/$(if $(value SEEDS),crawl,demo-$(shell date +%Y%m%d-%H%M%S))
FLAGS  ?=
SECONDS ?= 3600
SEED    ?= 1

# A value as one word of the shell, whatever is in it: a URL has & and ?, a folder's name may have spaces.
quoted  = '$(subst ','\'',$(1))'
into    = $(call quoted,$(if $(filter command line environment,$(origin INTO)),$(value INTO),$(INTO)))

.PHONY: help setup crawl cluster test check format docs site bench fuzz clean

help:
	@echo "make crawl                      crawl the bundled demo web (needs no network)"
	@echo "make crawl SEEDS='URL ...'      crawl these, quoted; also INTO=folder FLAGS='--contact you@example.org ...'"
	@echo "make cluster                    three nodes on this machine crawl the demo web; one is killed (a minute)"
	@echo "make test                       format, lint, types, layers and all tests"
	@echo "make check                      the quick half of that: no tests but the layering one"
	@echo "make format                     format the code"
	@echo "make docs                       write the generated pages in docs/ again"
	@echo "make site                       build the documentation as a site, into build/site"
	@echo "make bench                      lists the benchmarks and runs their quick forms, peers beside us (ten minutes)"
	@echo "make fuzz                       an hour of mutated pages, links, deliveries, journals, stores; SECONDS=60 for less"
	@echo "make setup                      only set up .venv"

setup: $(READY)

$(READY): pyproject.toml constraints.txt setup.py $(wildcard $(addprefix src/skitter/native/,python/* core/*.h core/markup/*.h))
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "skitter needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	@# an environment that is there keeps its Python: another one would leave half of each
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $(READY)

crawl: $(READY)
ifeq ($(strip $(value SEEDS)),)
	@$(BIN)/python -m skitter.testing.demo --into $(into) $(FLAGS)
else
	@$(BIN)/skitter crawl $(foreach seed,$(value SEEDS),$(call quoted,$(seed))) --into $(into) $(FLAGS)
endif

cluster: $(READY)
	@$(BIN)/skitter serve --cluster demo --nodes 3

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/unit/test_layers.py

test: check
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY)
	$(BIN)/python -m skitter.reference
	$(BIN)/python -m skitter.service.http.openapi
	$(BIN)/skitter man > docs/skitter.1
	$(BIN)/skitter man --pages docs/commands

# In an environment of its own: nothing else needs these packages.
SITE := .site
site: $(READY)
	@test -x $(SITE)/bin/mkdocs || { $(PYTHON) -m venv $(SITE) && $(SITE)/bin/pip install --quiet --disable-pip-version-check mkdocs-material==9.8.1; }
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict

bench: $(READY)
	$(BIN)/python -m bench

fuzz: $(READY)
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED)

clean:
	rm -rf $(VENV) .bench build dist src/*.egg-info src/skitter/native/*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis
