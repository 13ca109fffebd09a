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
from echo_hf.config.judges import read_judge, shipped_judges
from echo_hf.config.systems import shipped_configs
from echo_hf.engines.memory import (
    GIB,
    Fit,
    Shape,
    check_fit,
    fit,
    fit_of,
    gpu_memory,
    published_shape,
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


def qwen(size: str) -> str:
    return f"Qwen/Qwen2.5-VL-{size}-Instruct"


def shape_of(model: str) -> Shape:
    shape = published_shape(model)
    assert shape is not None
    return shape


def sum_of(model: str, gpu_gib: float | None = None, **options: Any) -> Fit:
    return fit(VllmOptions(model=model, **options), shape_of(model), gpu_gib)


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
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_key_value_heads")
    told = [shape.config[name] for name in (*names, "vocab_size", "tie_word_embeddings")]
    assert tuple(told) == PUBLISHED[size][:6]
    found = sum_of(qwen(size))
    assert (found.tokens, found.request) == (128_000, 2 * layers * kv * 128 * 2 * 128_000)


def numbers(text: str) -> dict[str, int]:
    """Of a config.json, as its keys and values follow each other."""
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


GUARD = numbers(
    "hidden_size 5120 intermediate_size 8192 intermediate_size_mlp 8192 num_hidden_layers 48 "
    "num_attention_heads 40 num_key_value_heads 8 head_dim 128 vocab_size 202048 "
    "num_local_experts 1"
)
GUARD_SEES = numbers(
    "hidden_size 1408 intermediate_size 5632 num_hidden_layers 34 vision_output_dim 4096 "
    "image_size 336 patch_size 14 projector_input_dim 4096 projector_output_dim 4096"
)
GEMMA = numbers(
    "hidden_size 5376 intermediate_size 21504 num_hidden_layers 62 num_attention_heads 32 "
    "num_key_value_heads 16 head_dim 128 vocab_size 262208"
)
GEMMA_SEES = numbers(
    "hidden_size 1152 intermediate_size 4304 num_hidden_layers 27 num_attention_heads 16 "
    "image_size 896 patch_size 14"
)
QWEN_3 = numbers("num_key_value_heads 8 head_dim 128 vocab_size 151936")
QWEN_3_SEES = numbers("depth 27 hidden_size 1152 intermediate_size 4304 patch_size 16")
QWEN_3_SIZES = {
    "8B": "hidden_size 4096 intermediate_size 12288 num_hidden_layers 36 num_attention_heads 32",
    "32B": "hidden_size 5120 intermediate_size 25600 num_hidden_layers 64 num_attention_heads 64",
}


@pytest.mark.extras
def test_parameters_are_those_that_transformers_counts() -> None:
    """In models of the published configs without any memory behind their weights."""
    torch = pytest.importorskip("torch", reason="torch, of the extra `transformers`")
    hf = pytest.importorskip("transformers", reason="transformers, of its own extra")
    guard = hf.Llama4Config(
        text_config={**GUARD, "use_qk_norm": False, "moe_layers": []}, vision_config=GUARD_SEES
    )
    gemma = hf.Gemma3Config(
        text_config=GEMMA, vision_config={**GEMMA_SEES, "vision_use_head": False}
    )
    configs = {"meta-llama/Llama-Guard-4-12B": guard, "google/gemma-3-27b-it": gemma}
    for size, told in QWEN_3_SIZES.items():
        text = {**QWEN_3, **numbers(told)}
        vision = {**QWEN_3_SEES, "out_hidden_size": text["hidden_size"]}
        config = hf.Qwen3VLConfig(text_config=text, vision_config=vision)
        configs[f"Qwen/Qwen3-VL-{size}-Instruct"] = config
    for name, config in configs.items():
        with torch.device("meta"):
            model = hf.AutoModelForImageTextToText.from_config(config)
        counted = {part: one.numel() for part, one in model.named_parameters()}
        seeing = sum(number for part, number in counted.items() if "vis" in part)
        shape = shape_of(name)
        assert (shape.parameters, shape.vision_parameters) == (sum(counted.values()), seeing), name


@pytest.mark.parametrize(
    ("model", "gib"), [(qwen("3B"), 7.1557), (qwen("7B"), 15.6271), (qwen("32B"), 62.4358)]
)
def test_vllm_reports_these_weights(model: str, gib: float) -> None:
    """It adds tables of positions."""
    assert 0 < gib - sum_of(model).weights / GIB < 0.2


def test_vllm_reports_this_cache() -> None:
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
ROUND = Shape(
    numbers(
        "hidden_size 100 intermediate_size 200 num_hidden_layers 2 head_dim 8 "
        "num_attention_heads 8 num_key_value_heads 4 vocab_size 1000"
    )
    | {"vision_config": numbers("hidden_size 50 intermediate_size 100")},
    parameters=10**9,
    vision_parameters=10**8,
)


def round_sum(**options: Any) -> Fit:
    usual = {"model": "acme/round", "max_model_len": 1000, "max_num_seqs": 2, "limit_images": 3}
    step = {"engine_args": {"max_num_batched_tokens": 4000}}
    return fit(VllmOptions(**{**usual, **step, **options}), ROUND)


def test_a_sum_is_made_of_its_parts() -> None:
    found = round_sum(max_pixels=1280 * 28**2, family="qwen2_5_vl")
    assert found.weights == 2 * 10**9
    assert found.request == 256 * 1008  # vLLM gives out 16 tokens at a time
    assert found.image_tokens == 3 * 1280
    # Three images go into a step; 4 patches a token, 2 x 50 + 3 x 100 numbers each; their
    # embeddings stay. A layer of the language model takes 4000 x (2 x 100 + 3 x 200) x 2.
    images, layer = 3 * 1280 * 4 * 400 * 2, 4000 * 800 * 2
    assert found.working == max(images, layer) + 3 * 1280 * 100 * 2 + GIB
    assert found.needed == found.weights + found.request + found.working
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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"quantization": "fp8"}, "quantization 'fp8' has a size that is not known here: name"),
        ({"kv_cache_dtype": "nvfp4"}, "kv_cache_dtype 'nvfp4' has a size"),
        ({"engine_args": {"cpu_offload_gb": 4}}, "engine_args.cpu_offload_gb moves memory"),
        ({"max_pixels": None, "family": None}, "max_pixels is null, so that an image may"),
    ],
)
def test_what_is_not_known_is_said(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UnknownSizeError, match=f"^{said}"):
        round_sum(**options)


def test_an_image_of_gemma_is_256_tokens_of_16_patches_each() -> None:
    """As its config.json says: 896 / 14 patches a side, and mm_tokens_per_image."""
    found = sum_of("google/gemma-3-27b-it", max_model_len=16_384, limit_images=12)
    assert found.image_tokens == 12 * 256
    assert found.request == 2 * 62 * 16 * 128 * 2 * 16_384


def test_a_layer_with_a_sliding_window_keeps_no_more_than_the_window_and_a_step() -> None:
    """Of gemma's 62 layers each sixth attends to everything, the others to 1,024 tokens.

    So that a card of 80 GB has room for a request that would not fit if all did.
    """
    gemma = "google/gemma-3-27b-it"
    step = {"max_model_len": 65_536, "engine_args": {"max_num_batched_tokens": 4096}}
    a_layer, near = 2 * 16 * 128 * 2, 1023 + 4096
    request = sum_of(gemma, 79.1, **step).request
    assert request == pytest.approx(a_layer * (10 * 65_536 + 52 * near), rel=1e-3)
    check_fit({"judge": EngineChoice(kind="vllm", model=gemma, gpu_memory_gib=79.1, **step)})


def test_a_context_that_nobody_knows_has_to_be_given() -> None:
    guard = "meta-llama/Llama-Guard-4-12B"
    with pytest.raises(UnknownSizeError, match=r"give max_model_len$"):
        sum_of(guard)
    # 16 tiles and the whole, of (336 / 14) ** 2 / 4 tokens each.
    found = sum_of(guard, max_model_len=16_384, limit_images=5, max_pixels=None)
    assert found.image_tokens == 5 * 17 * 144
    assert found.weights / GIB == pytest.approx(22.35, abs=0.01)


# --- the model at hand, and the GPU ---


def write_model(folder: Path, config: dict[str, Any], tensors: dict[str, tuple[str, int]]) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    header, end, sizes = {}, 0, {"BF16": 2, "F32": 4, "I32": 4}
    for name, (dtype, count) in tensors.items():
        start, end = end, end + count * sizes[dtype]
        header[name] = {"dtype": dtype, "shape": [count], "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))
    return folder


CONFIG: dict[str, Any] = numbers(
    "hidden_size 64 intermediate_size 128 num_hidden_layers 2 num_attention_heads 4 "
    "vocab_size 100 max_position_embeddings 512"
)


def test_a_folder_tells_its_own_shape(tmp_path: Path) -> None:
    """A float of 32 bits is loaded with 16; what the files hold quantised stays as large."""
    tensors = {"model.a": ("BF16", 500), "visual.b": ("F32", 300), "model.c.qweight": ("I32", 50)}
    folder = write_model(tmp_path / "m", {"text_config": CONFIG}, tensors)
    choice = EngineChoice(kind="vllm", model=str(folder))
    found = fit_of(choice, 24)
    assert found.weights == 2 * 800 + 4 * 50
    assert found.request == 2 * 2 * 4 * 16 * 2 * 512  # as many heads of keys as of queries
    blind = EngineChoice(kind="vllm", model=str(folder), limit_images=0)
    assert fit_of(blind, 24).weights == 2 * 500 + 4 * 50


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"layer_types": ["full_attention", "sliding_attention"]}, "not all of its layers attend"),
        ({"sliding_window": 128}, "not all of its layers attend"),
        ({"kv_lora_rank": 8}, "not all of its layers attend"),
        ({"hidden_size": None}, "shape of .* is not known here.*TypeError"),
        ({"num_attention_heads": 0, "num_key_value_heads": 1}, "is not known here.*ZeroDivision"),
    ],
)
def test_a_folder_of_another_kind_has_no_sum(tmp_path: Path, changed: Any, said: str) -> None:
    folder = write_model(tmp_path / "m", {**CONFIG, **changed}, {"model.a": ("BF16", 500)})
    with pytest.raises(UnknownSizeError, match=said):
        fit_of(EngineChoice(kind="vllm", model=str(folder)))


def test_nobody_is_asked_about_an_unknown_model(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = EngineChoice(kind="vllm", model="acme/none")
    with pytest.raises(UnknownSizeError, match=r"^no published shape of 'acme/none' here: name"):
        fit_of(choice)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    said = said_by(UnknownSizeError, fit_of, choice, ask=True)
    assert said.startswith("the shape of 'acme/none' is not known here: name a")
    with pytest.raises(UnknownSizeError, match=r"^kind 'rules': only what 'vllm' takes is"):
        fit_of(EngineChoice(kind="rules"))
    with pytest.raises(EngineError, match="unknown key 'modle'"):
        fit_of(EngineChoice(kind="vllm", modle="acme/none"))


@pytest.mark.parametrize(
    ("visible", "printed", "gib"),
    [
        (None, "81559, 551\n24576, 400", 24_176 / 1024),
        ("1,0", "81559, 551", 81_008 / 1024),
        ("", "81559, 551", None),
        (None, "[N/A], [N/A]", None),
        (None, "", None),
    ],
)
def test_a_gpu_is_as_large_as_cuda_counts_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    visible: str | None,
    printed: str,
    gib: float | None,
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/asked\nprintf '%s' '{printed}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpu_memory() == gib
    assert ("--id=1,0" in (tmp_path / "asked").read_text()) is (visible == "1,0")


def test_a_machine_without_a_gpu_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_memory() is None


# --- refusals ---

TIGHT = {"kind": "vllm", "model": qwen("32B"), "max_model_len": 32_768, "gpu_memory_gib": 79.1}


def test_what_cannot_fit_is_refused_with_the_sum() -> None:
    with pytest.raises(EngineError) as caught:
        check_fit({"reader": EngineChoice(**TIGHT)})
    assert str(caught.value) == (
        "engine 'reader' does not fit: weights 62.3 GiB + 1 request of 32,768 tokens 8.0 GiB + "
        "working memory about 4.0 GiB = 74.3 GiB, of 71.2 GiB (0.9 of 79.1): lower max_model_len "
        "to 20,016, raise gpu_memory_utilization or tensor_parallel_size, lower "
        "engine_args.max_num_batched_tokens, or take a smaller or a quantised model"
    )
    # What it advises is enough.
    check_fit({"reader": EngineChoice(**{**TIGHT, "max_model_len": 20_016})})
    with pytest.raises(EngineError, match="lower max_model_len to 20,016, "):
        check_fit({"reader": EngineChoice(**{**TIGHT, "max_model_len": 20_017})})


def test_without_estimates_only_what_is_certain_is_refused() -> None:
    check_fit({"reader": EngineChoice(**TIGHT)}, estimates=False)
    with pytest.raises(EngineError, match=r"of 128,000 tokens 31\.2 GiB"):
        check_fit({"reader": EngineChoice(**{**TIGHT, "max_model_len": None})}, estimates=False)


def test_nothing_is_refused_that_nobody_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no GPU
    choices = {
        "unknown": EngineChoice(kind="vllm", model="acme/none", gpu_memory_gib=1),
        "rules": EngineChoice(kind="rules"),
        "anywhere": EngineChoice(kind="vllm", model=qwen("72B")),
    }
    check_fit(choices)


def test_what_is_shipped_fits_on_a_card_of_80_gb() -> None:
    configs = [load_evaluation(path) for path in shipped_configs().glob("*.yaml")]
    engines = [engine for one in configs for engine in getattr(one, "engines", {}).values()]
    judges = [read_judge(path) for path in shipped_judges()]
    judges += [judge for one in configs for judge in one.judges]
    local = [one for one in (*engines, *(one.engine for one in judges)) if one.kind == "vllm"]
    assert len(local) >= 6
    for choice in local:
        assert fit_of(choice, 79.1).fits, choice


def test_an_engine_on_two_gpus_says_so() -> None:
    found = sum_of(qwen("72B"), 79.1, max_model_len=32_768, tensor_parallel_size=2)
    assert "on each of 2 GPUs, of 71.2 GiB (0.9 of 79.1)" in str(found)
    assert (found.requests, found.advice.startswith("raise gpu_memory_")) == (0.0, True)
