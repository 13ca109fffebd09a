"""What fits on a GPU, against published configs, transformers' own models and vLLM's own reports.

Reports of vLLM: https://github.com/vllm-project/vllm/issues/27059 (32B, "Model loading took 62.4358
GiB"), https://github.com/xorbitsai/inference/issues/4926 (Qwen3-VL-8B, "max seq len (262144), (36.0
GiB KV cache is needed"), and logs in people's repositories, of 3B ("Model loading took 7.1557
GiB") and of 7B on an L4 (15.6271 GiB).
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from echo_hf.config.checks import EngineChoice
from echo_hf.config.evaluation import read_judge, shipped_judges
from echo_hf.config.systems import shipped_configs
from echo_hf.engines.memory import (
    GIB,
    MemoryEstimate,
    ModelShape,
    check_gpu_memory,
    estimate_engine_memory,
    estimate_memory,
    find_shape,
    measure_gpu_memory,
)
from echo_hf.engines.vllm import VllmOptions
from echo_hf.errors import EngineError, UnknownSizeError
from echo_hf.systems.benchmark import load_evaluation
from tests.errors_for_tests import said_by

# Of https://huggingface.co/Qwen/Qwen2.5-VL-*-Instruct/blob/main/config.json, by their sizes:
# hidden, intermediate, layers, heads of keys and values, vocabulary, whether the output is the
# embeddings, and intermediate of the part that sees images, whose other widths are equal.
PUBLISHED: dict[str, tuple[int, int, int, int, int, bool, int]] = {
    "3B": (2048, 11_008, 36, 2, 151_936, True, 3420),
    "7B": (3584, 18_944, 28, 4, 152_064, False, 3420),
    "32B": (5120, 27_648, 64, 8, 152_064, False, 3456),
    "72B": (8192, 29_568, 80, 8, 152_064, False, 3456),
}
GUARD, GEMMA = "meta-llama/Llama-Guard-4-12B", "google/gemma-3-27b-it"


def qwen(size: str) -> str:
    return f"Qwen/Qwen2.5-VL-{size}-Instruct"


def shape_of(model: str) -> ModelShape:
    shape = find_shape(model)
    assert shape is not None
    return shape


def sum_of(model: str, gpu_gib: float | None = None, **options: Any) -> MemoryEstimate:
    return estimate_memory(VllmOptions(model=model, **options), shape_of(model), gpu_gib)


@pytest.mark.parametrize("size", PUBLISHED)
def test_parameters_follow_from_the_published_config(size: str) -> None:
    hidden, inner, layers, kv, words, is_tied, seen = PUBLISHED[size]
    keys = 128 * kv
    attention = 2 * hidden * hidden + hidden + 2 * (hidden * keys + keys)
    text = layers * (attention + 3 * hidden * inner + 2 * hidden) + hidden
    ends = words * hidden * (1 if is_tied else 2)
    width = 1280
    block = 4 * width * width + 4 * width + 3 * width * seen + 2 * seen + width + 2 * width
    merged = 4 * width
    merger = width + merged * merged + merged + merged * hidden + hidden
    vision = 3 * 2 * 14 * 14 * width + 32 * block + merger
    shape = shape_of(qwen(size))
    assert (shape.parameters, shape.vision_parameters) == (text + ends + vision, vision)
    found = sum_of(qwen(size))
    assert (found.tokens, found.request) == (128_000, 2 * layers * kv * 128 * 2 * 128_000)


# What decides parameters of the other models beside the config in `shapes.yaml`, by their own.
SEES = {"num_attention_heads": 16, "num_hidden_layers": 27, "depth": 27}
MORE: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    GUARD: (
        "Llama4Config",
        {"intermediate_size_mlp": 8192, "use_qk_norm": False, "moe_layers": []},
        {
            "num_hidden_layers": 34,
            "vision_output_dim": 4096,
            "projector_input_dim": 4096,
            "projector_output_dim": 4096,
        },
    ),
    GEMMA: ("Gemma3Config", {}, {**SEES, "vision_use_head": False}),
    "Qwen/Qwen3-VL-8B-Instruct": ("Qwen3VLConfig", {}, {**SEES, "out_hidden_size": 4096}),
    "Qwen/Qwen3-VL-32B-Instruct": ("Qwen3VLConfig", {}, {**SEES, "out_hidden_size": 5120}),
}


@pytest.mark.extras
@pytest.mark.parametrize("name", MORE)
def test_parameters_are_those_that_transformers_counts(name: str) -> None:
    """In models of the published configs without any memory behind their weights."""
    torch = pytest.importorskip("torch", reason="torch, of the extra `transformers`")
    hf = pytest.importorskip("transformers", reason="transformers, of its own extra")
    kind, text, vision = MORE[name]
    shape = shape_of(name)
    own = {key: value for key, value in shape.config.items() if not key.startswith("sliding")}
    config = getattr(hf, kind)(
        text_config={**own, "num_local_experts": 1, **text},
        vision_config={**own["vision_config"], **vision},
    )
    with torch.device("meta"):
        model = hf.AutoModelForImageTextToText.from_config(config)
    counted = {part: one.numel() for part, one in model.named_parameters()}
    seeing = sum(number for part, number in counted.items() if "vis" in part)
    assert (shape.parameters, shape.vision_parameters) == (sum(counted.values()), seeing)


def test_vllm_reports_these_weights_and_this_cache() -> None:
    """It adds tables of positions to the weights."""
    for size, gib in {"3B": 7.1557, "7B": 15.6271, "32B": 62.4358}.items():
        assert 0 < gib - sum_of(qwen(size)).weights / GIB < 0.2
    found = sum_of("Qwen/Qwen3-VL-8B-Instruct")
    assert found.tokens == 262_144
    assert found.request / GIB == pytest.approx(36.0)


def test_working_memory_is_near_what_vllm_measured() -> None:
    """Version 0.9 on an L4 of 22.0 GiB, with a whole image of 16,384 tokens and steps of 2,048.

    Of 0.9 of the GPU, 15.6271 GiB of weights and 1.81 GiB of cache (33,824 tokens) were known,
    and graphs took 0.51 GiB on top.
    """
    options = {"max_model_len": 2048, "engine_args": {"max_num_batched_tokens": 2048}}
    found = sum_of(qwen("7B"), 22.03, max_pixels=None, **options)
    measured = 0.9 * 22.03 - 15.6271 - 1.81 + 0.51
    assert found.working / GIB == pytest.approx(measured, abs=0.5)
    assert found.request / 2048 == pytest.approx(1.81 * GIB / 33_824, rel=0.01)


# A model of round numbers: a token of cache takes 2 x 2 x 4 x 8 x 2 bytes = 256.
ROUND = ModelShape(
    {
        "hidden_size": 100,
        "intermediate_size": 200,
        "num_hidden_layers": 2,
        "head_dim": 8,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "vocab_size": 1000,
        "vision_config": {"hidden_size": 50, "intermediate_size": 100},
    },
    parameters=10**9,
    vision_parameters=10**8,
)


def round_sum(**options: Any) -> MemoryEstimate:
    usual = {"model": "acme/round", "max_model_len": 1000, "max_num_seqs": 2, "limit_images": 3}
    step = {"engine_args": {"max_num_batched_tokens": 4000}}
    return estimate_memory(VllmOptions(**{**usual, **step, **options}), ROUND)


def test_a_sum_is_made_of_its_parts() -> None:
    found = round_sum(max_pixels=1280 * 28**2, family="qwen2_5_vl")
    assert found.weights == 2 * 10**9
    assert found.request == 256 * 1008  # vLLM gives out 16 tokens at a time
    assert found.image_tokens == 3 * 1280
    # Three images go into a step; 4 patches a token, 2 x 50 + 3 x 100 numbers each; their
    # embeddings stay. A layer of the language model takes 4000 x (2 x 100 + 3 x 200) x 2.
    images, layer = 3 * 1280 * 4 * 400 * 2, 4000 * 800 * 2
    assert found.working == max(images, layer) + 3 * 1280 * 100 * 2 + GIB
    assert found.required_memory == found.weights + found.request + found.working
    assert round_sum(enforce_eager=True, limit_images=0).working == layer + GIB // 4
    assert round_sum(limit_images=0).weights == 2 * 9 * 10**8
    assert round_sum(max_num_seqs=10_000, limit_images=0).working == 10**7 * 16 + GIB


@pytest.mark.parametrize(
    ("options", "weights", "token"),
    [
        ({"dtype": "float32"}, 4 * 10**9, 512),
        ({"kv_cache_dtype": "fp8_e5m2"}, 2 * 10**9, 128),
        ({"tensor_parallel_size": 2}, 10**9, 128),
        ({"tensor_parallel_size": 8}, 250_000_000, 64),  # each GPU has one head at least
    ],
    ids=str,
)
def test_options_change_the_sum(options: dict[str, Any], weights: int, token: int) -> None:
    found = round_sum(**options)
    assert (found.weights, found.request) == (weights, token * 1008)


def test_an_image_of_gemma_is_256_tokens_and_a_window_keeps_no_more_than_itself_and_a_step() -> (
    None
):
    """Of 62 layers each sixth attends to everything, the others to 1,024 tokens.

    So that a card of 80 GB has room for a request that would not fit if all did.
    """
    assert sum_of(GEMMA, max_model_len=16_384, limit_images=12).image_tokens == 12 * 256
    step = {"max_model_len": 65_536, "engine_args": {"max_num_batched_tokens": 4096}}
    request = sum_of(GEMMA, 79.1, **step).request
    assert request == pytest.approx(2 * 16 * 128 * 2 * (10 * 65_536 + 52 * 5119), rel=1e-3)
    check_gpu_memory({"judge": EngineChoice(kind="vllm", model=GEMMA, gpu_memory_gib=79.1, **step)})


def test_an_image_of_the_guard_is_17_tiles() -> None:
    """Of (336 / 14) ** 2 / 4 tokens each; its longest context has to be given."""
    found = sum_of(GUARD, max_model_len=16_384, limit_images=5, max_pixels=None)
    assert found.image_tokens == 5 * 17 * 144
    assert found.weights / GIB == pytest.approx(22.35, abs=0.01)


# --- the model at hand, and the GPU ---

CONFIG: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "vocab_size": 100,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
}


def write_model(folder: Path, config: dict[str, Any]) -> Path:
    header, end, sizes = {}, 0, {"BF16": 2, "F32": 4, "I32": 4}
    tensors = {"model.a": ("BF16", 500), "visual.b": ("F32", 300), "model.c.qweight": ("I32", 50)}
    for name, (dtype, count) in tensors.items():
        start, end = end, end + count * sizes[dtype]
        header[name] = {"dtype": dtype, "shape": [count], "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))
    return folder


def test_a_folder_tells_its_own_shape(tmp_path: Path) -> None:
    """A float of 32 bits is loaded with 16; what the files hold quantised stays as large."""
    model = str(write_model(tmp_path, {"text_config": CONFIG}))
    found = estimate_engine_memory(EngineChoice(kind="vllm", model=model), 24)
    assert found.weights == 2 * 800 + 4 * 50
    assert found.request == 2 * 2 * 4 * 16 * 2 * 512  # as many heads of keys as of queries
    blind = EngineChoice(kind="vllm", model=model, limit_images=0)
    assert estimate_engine_memory(blind, 24).weights == 2 * 500 + 4 * 50


@pytest.mark.parametrize(
    ("options", "config", "said"),
    [
        ({"quantization": "fp8", "model": GEMMA}, None, "quantization 'fp8': name a model that is"),
        ({"kv_cache_dtype": "nvfp4"}, {}, "kv_cache_dtype 'nvfp4' has a size"),
        ({"engine_args": {"cpu_offload_gb": 4}}, {}, "engine_args moves memory in a way"),
        ({"model": GUARD}, None, "no longest context .* give max_model_len$"),
        ({"model": "acme/none"}, None, "no published shape of 'acme/none' here: name its folder"),
        ({}, {"layer_types": ["full_attention", "sliding_attention"]}, "not all of its layers att"),
        ({}, {"sliding_window": 128}, "not all of its layers attend"),
        ({}, {"kv_lora_rank": 8}, "not all of its layers attend"),
        ({}, {"hidden_size": None}, "shape of .* is not known here.*TypeError"),
    ],
    ids=str,
)
def test_what_is_not_known_is_said(
    tmp_path: Path, options: dict[str, Any], config: Any, said: str
) -> None:
    model = {} if config is None else {"model": str(write_model(tmp_path, {**CONFIG, **config}))}
    choice = EngineChoice(kind="vllm", **{**model, **options})
    with pytest.raises(UnknownSizeError, match=f"^(the )?{said}"):
        estimate_engine_memory(choice)


def test_an_image_of_any_size_has_no_sum() -> None:
    with pytest.raises(UnknownSizeError, match="max_pixels is null, so that an image may"):
        round_sum(max_pixels=None, family=None)


def test_only_vllm_is_worked_out_and_a_bad_option_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    choice = EngineChoice(kind="vllm", model="acme/none")
    said = said_by(UnknownSizeError, estimate_engine_memory, choice, ask=True)
    assert said.startswith("the shape of 'acme/none' is not known here: name a")
    with pytest.raises(UnknownSizeError, match=r"^kind 'rules': only what 'vllm' takes is"):
        estimate_engine_memory(EngineChoice(kind="rules"))
    with pytest.raises(EngineError, match="unknown key 'modle'"):
        estimate_engine_memory(EngineChoice(kind="vllm", modle="acme/none"))


@pytest.mark.parametrize(
    ("visible", "printed", "gib"),
    [
        (None, "81559, 551\n24576, 400", 24_176 / 1024),
        ("1,0", "81559, 551", 81_008 / 1024),
        ("", "81559, 551", None),
        (None, "[N/A], [N/A]", None),
        (None, None, None),
    ],
)
def test_a_gpu_is_as_large_as_cuda_counts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: Any, printed: Any, gib: float | None
) -> None:
    if printed is not None:
        tool = tmp_path / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/asked\nprintf '%s' '{printed}'\n")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin" if printed else str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert measure_gpu_memory() == gib
    if visible == "1,0":
        assert "--id=1,0" in (tmp_path / "asked").read_text()


# --- refusals ---

TIGHT = {"kind": "vllm", "model": qwen("32B"), "max_model_len": 32_768, "gpu_memory_gib": 79.1}


def test_what_cannot_fit_is_refused_with_the_sum() -> None:
    said = said_by(EngineError, check_gpu_memory, {"reader": EngineChoice(**TIGHT)})
    assert said == (
        "engine 'reader' does not fit: weights 62.3 GiB + 1 request of 32,768 tokens 8.0 GiB + "
        "working memory about 4.0 GiB = 74.3 GiB, of 71.2 GiB (0.9 of 79.1): lower max_model_len "
        "to 20,016, raise gpu_memory_utilization or tensor_parallel_size, lower "
        "engine_args.max_num_batched_tokens, or take a smaller or a quantised model"
    )
    # What it advises is enough.
    check_gpu_memory({"reader": EngineChoice(**{**TIGHT, "max_model_len": 20_016})})
    with pytest.raises(EngineError, match="lower max_model_len to 20,016, "):
        check_gpu_memory({"reader": EngineChoice(**{**TIGHT, "max_model_len": 20_017})})
    # Without the estimate, only what is certain is refused.
    check_gpu_memory({"reader": EngineChoice(**TIGHT)}, estimates=False)
    with pytest.raises(EngineError, match=r"of 128,000 tokens 31\.2 GiB"):
        check_gpu_memory(
            {"reader": EngineChoice(**{**TIGHT, "max_model_len": None})}, estimates=False
        )
    found = sum_of(qwen("72B"), 79.1, max_model_len=32_768, tensor_parallel_size=2)
    assert "on each of 2 GPUs, of 71.2 GiB (0.9 of 79.1)" in str(found)
    assert (found.concurrent_requests, found.advice.startswith("raise gpu_memory_")) == (0.0, True)


def test_nothing_is_refused_that_nobody_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no GPU
    choices = {
        "unknown": EngineChoice(kind="vllm", model="acme/none", gpu_memory_gib=1),
        "rules": EngineChoice(kind="rules"),
        "anywhere": EngineChoice(kind="vllm", model=qwen("72B")),
    }
    check_gpu_memory(choices)


def test_what_is_shipped_fits_on_a_card_of_80_gb() -> None:
    configs = [load_evaluation(path) for path in shipped_configs().glob("*.yaml")]
    engines = [engine for one in configs for engine in getattr(one, "engines", {}).values()]
    judges = [read_judge(path) for path in shipped_judges()]
    judges += [judge for one in configs for judge in one.judges]
    local = [one for one in (*engines, *(one.engine for one in judges)) if one.kind == "vllm"]
    assert len(local) >= 6
    for choice in local:
        assert estimate_engine_memory(choice, 79.1).fits, choice
