"""Which weights a model's name stands for, whose rule its images follow, and its signature."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from echo_hf.engines.base import Completion, make_engine
from echo_hf.engines.checkpoint import (
    Checkpoint,
    can_see_images,
    failed_completion,
    find_checkpoint,
    model_family,
)
from echo_hf.engines.pooled import make_portable
from echo_hf.engines.schema import build_grammar_schema
from echo_hf.errors import EngineError, ImageError, MissingExtraError
from tests.errors_for_tests import said_by
from tests.golden_requests import golden_requests
from tests.stages_for_tests import ROOT, request

COMMIT, OTHER = "a" * 40, "b" * 40
MODEL = "acme/judge"
WEIGHTS = bytes(range(256)) * 4096  # a megabyte
KINDS = ("vllm", "transformers")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = tmp_path / "hub" / "models--acme--judge"
    (repository / "refs").mkdir(parents=True)
    for branch, commit, kind in (("main", COMMIT, "qwen2_5_vl"), ("v2", OTHER, "llama")):
        snapshot = repository / "snapshots" / commit
        snapshot.mkdir(parents=True)
        (snapshot / "config.json").write_text(json.dumps({"model_type": kind}))
        (repository / "refs" / branch).write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = tmp_path / "judge-7b"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "qwen2_5_vl"}')
    (model / "tokenizer.json").write_text("{}")
    (model / "chat_template.jinja").write_text("{{ messages }}")
    (model / "model.safetensors").write_bytes(WEIGHTS)
    return model


@pytest.mark.usefixtures("cache")
def test_a_name_stands_for_the_commit_in_the_cache() -> None:
    for revision, commit, family in (
        (None, COMMIT, "qwen2_5_vl"),
        ("v2", OTHER, None),
        (OTHER, OTHER, None),
    ):
        assert find_checkpoint(MODEL, revision) == Checkpoint(MODEL, MODEL, commit, family)
    # Stored answers of a pinned commit are found where the model is not, the family by name.
    qwen = "Qwen/Qwen2.5-VL-3B-Instruct"
    assert find_checkpoint(qwen, "c" * 40) == Checkpoint(qwen, qwen, "c" * 40, "qwen2_5_vl")
    for model in ("acme/absent", "./absent"):
        said = said_by(EngineError, find_checkpoint, model)
        assert said.startswith(f"no model {model!r} at revision 'main': neither a folder")


def test_a_folder_is_known_by_what_it_holds(folder: Path, tmp_path: Path) -> None:
    found = find_checkpoint(str(folder))
    moved = tmp_path / "elsewhere" / folder.name
    shutil.copytree(folder, moved)
    (moved / "README.md").write_text("Our judge.")
    assert (found.name, found.commit, found.family) == ("judge-7b", None, "qwen2_5_vl")
    assert found.revision.startswith("sha256:")
    assert find_checkpoint(str(moved)).revision == found.revision
    with pytest.raises(EngineError, match=r"is a folder, which has no revision 'v2': leave it out"):
        find_checkpoint(str(folder), "v2")
    for name in ("config.json", "model.safetensors"):
        (moved / name).unlink()
        with pytest.raises(EngineError, match=r"no model: expected 'config\.json' and weights"):
            find_checkpoint(str(moved))
        shutil.copy(folder / name, moved / name)


@pytest.mark.parametrize(
    ("name", "data", "same"),
    [
        ("config.json", b'{"model_type": "qwen2_5_vl"} ', False),
        ("tokenizer.json", b"{} ", False),
        ("chat_template.jinja", b"{{ messages }} ", False),
        ("new.json", b" ", False),
        ("model.safetensors", WEIGHTS, True),
        ("model.safetensors", bytes(255 - value for value in WEIGHTS), False),
    ],
)
def test_a_changed_file_is_another_model(folder: Path, name: str, data: bytes, same: bool) -> None:
    before = find_checkpoint(str(folder)).revision
    (folder / name).write_bytes(data)
    assert (find_checkpoint(str(folder)).revision == before) is same


FAMILIES = {
    "qwen2_5_vl": ("Qwen/Qwen2.5-VL-72B-Instruct-AWQ", "unsloth/qwen2.5-vl-7b", "qwen2_5_vl"),
    "qwen2_vl": ("Qwen/Qwen2-VL-7B-Instruct", "qwen2_vl"),
    "qwen3_vl": ("Qwen/Qwen3-VL-30B-A3B-Instruct-FP8", "Qwen/Qwen3.5-27B", "qwen3_5_moe"),
    None: ("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen3-32B", "meta-llama/Llama-Guard-4-12B", ""),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_told_by_name_or_type(family: str | None) -> None:
    assert {model_family(model) for model in FAMILIES[family]} == {family}


@pytest.mark.parametrize(
    ("text", "family"),
    [('{"model_type": "qwen2_5_vl"}', "qwen2_5_vl"), ('{"model_type": null}', None)],
)
def test_a_folder_is_told_by_its_configuration(tmp_path: Path, text: str, family: Any) -> None:
    folder = tmp_path / "Qwen3-VL-finetuned"
    folder.mkdir()
    (folder / "config.json").write_text(text)
    assert model_family(str(folder)) == family
    for broken in (b"{", b"[]", b"\x80"):
        (folder / "config.json").write_bytes(broken)
        with pytest.raises(EngineError, match=r"^cannot read '.*config\.json': "):
            model_family(str(folder))


# --- what decides an answer, and what a config may say ---


def signature(kind: str, folder: Path, **options: Any) -> dict[str, Any]:
    return dict(make_engine(kind, model=str(folder), **options).signature())


# Options that decide no answer: at temperature 0 nothing is drawn, and the family's own bounds are
# no others.
SAME = {"seed": 3, "top_p": 0.5, "min_pixels": 3136, "family": "qwen2_5_vl", "devices": [0, 1]}
OWN_SAME: dict[str, dict[str, Any]] = {
    "transformers": {"batch_size": 2},
    "vllm": {
        "max_num_seqs": 2,
        "gpu_memory_utilization": 0.5,
        "tensor_parallel_size": 2,
        "limit_images": 1,
        "enforce_eager": True,
        "gpu_memory_gib": 79.1,
        "engine_args": {},
    },
}
WARM = {"temperature": 0.7}
OTHERS: list[dict[str, Any]] = [
    *({"dtype": "float16"}, {"max_pixels": 50_176}, {"min_pixels": 50_176}, {"family": "qwen3_vl"}),
    *(WARM, {**WARM, "seed": 1}, {**WARM, "top_p": 0.9}),
    {"chat_template_kwargs": {"enable_thinking": False}},
]
OWN_OTHERS: dict[str, list[dict[str, Any]]] = {
    "transformers": [],
    "vllm": [
        *({"quantization": "fp8"}, {"kv_cache_dtype": "fp8"}, {"max_model_len": 4096}),
        *({"engine_args": {"max_num_batched_tokens": step}} for step in (4096, 8192)),
        {"structured": False},
    ],
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_decides_an_answer_is_in_the_signature(folder: Path, kind: str) -> None:
    own = signature(kind, folder)
    expected = {
        "kind": kind,
        "model": "judge-7b",
        "dtype": "auto",
        "sampling": {"temperature": 0.0},
        "pixels": [28, 3136, 1_003_520],
        "chat_template": None,
        "chat_template_kwargs": {},
    }
    assert {name: own[name] for name in expected} == expected
    assert own["revision"].startswith("sha256:")
    assert signature(kind, folder, **SAME, **OWN_SAME[kind]) == own
    made = [own, *(signature(kind, folder, **one) for one in OTHERS + OWN_OTHERS[kind])]
    for name, text in (("a", "x"), ("a", "y"), ("b", "y")):
        template = folder.parent / f"{name}.jinja2"
        template.write_text(text)
        made.append(signature(kind, folder, chat_template=str(template)))
    assert made.pop() == made[-1]  # of another file that says the same
    assert len({str(one) for one in made}) == len(made)


BAD_OPTIONS: list[tuple[tuple[str, ...], dict[str, Any], str]] = [
    (KINDS, {"modle": MODEL}, "unknown key 'modle'; did you mean 'model'? known: "),
    (KINDS, {"temperature": float("nan")}, "temperature is nan: "),
    (KINDS, {"seed": "1"}, "seed is '1': "),
    (KINDS, {"chat_template": "absent.jinja"}, "chat_template is 'absent.jinja': path"),
    # It would run what strangers wrote.
    (KINDS, {"trust_remote_code": True}, "unknown key 'trust_remote_code'"),
    (KINDS, {"family": "qwen25"}, "unknown family 'qwen25'; did you mean 'qwen"),
    (("vllm",), {"max_num_seqs": 0}, "max_num_seqs is 0: input should be greater"),
    (("vllm",), {"structured": "yes"}, "structured is 'yes': input should be a "),
    *(
        (
            ("vllm",),
            {"engine_args": {name: True}},
            f"engine_args is {{{name!r}: True}}: has {name!r}, which the engine sets itself",
        )
        for name in ("limit_mm_per_prompt", "trust_remote_code", "model")
    ),
    (("vllm",), {"engine_args": {"hf_token": "x"}}, "engine_args: has 'hf_token', expected no se"),
    (("transformers",), {"batch_size": 0}, "batch_size is 0: "),
]


@pytest.mark.parametrize(("kinds", "given", "said"), BAD_OPTIONS, ids=str)
def test_a_bad_option_is_one_line(kinds: Any, given: dict[str, Any], said: str) -> None:
    for kind in kinds:
        told = said_by(EngineError, partial(make_engine, kind, **{"model": MODEL, **given}))
        assert told.startswith(f"engine {kind!r}: {said}")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_missing_is_told_with_the_first_request(
    folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("echo_hf._infra.registry.find_spec", lambda _: None)
    options = {} if kind == "vllm" else {"structured": "none"}
    with make_engine(kind, model=str(folder), **options) as engine:
        assert list(engine.stream([])) == []
        with pytest.raises(MissingExtraError, match=rf'pip install "echo-hf\[{kind}\]"'):
            next(engine.stream([request("red")]))


def test_what_is_heavy_waits_for_the_first_request(folder: Path) -> None:
    code = f"""
import sys
from echo_hf.engines.base import make_engine
for kind in {KINDS!r}:
    with make_engine(kind, model={str(folder)!r}) as engine:
        engine.signature()
        assert list(engine.stream([])) == []
make_engine("openai", model="tiny").signature()
heavy = {{"torch", "transformers", "accelerate", "xgrammar", "vllm", "openai", "httpx"}}
print(*heavy & set(sys.modules))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_an_error_is_an_answer_of_one_line() -> None:
    said = {
        ImageError("image 'a' is torn"): "image 'a' is torn",
        ValueError("two\n  lines"): "ValueError: two lines",
        RuntimeError("o" * 999): ("RuntimeError: " + "o" * 999)[:400],
    }
    assert [failed_completion(error) for error in said] == [
        Completion(None, s, "error") for s in said.values()
    ]


def test_devices_that_are_not_there_are_told_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    odd: list[tuple[Any, dict[str, Any], str]] = [
        ("all", {}, "devices is 'all', and this machine shows no GPUs: expected all"),
        ([1], {}, r"devices is \[1\], and this machine shows no GPUs: expected all"),
        (3, {"tensor_parallel_size": 2}, "devices is 3, and .*, and a multiple of the 2 that a"),
    ]
    for devices, more, said in odd:
        with make_engine("vllm", model=str(folder), devices=devices, **more) as engine:
            assert list(engine.stream([])) == []
            with pytest.raises(EngineError, match=f"^engine 'vllm': {said}"):
                list(engine.stream([request("a")]))


@pytest.mark.parametrize("name", sorted(golden_requests()))
def test_what_every_stage_asks_can_be_asked_in_another_process(name: str) -> None:
    """Also where the class of its answer was made for it, and cannot be imported there."""
    asked = golden_requests()[name]
    there = pickle.loads(pickle.dumps(make_portable(asked)))  # noqa: S301 - our own bytes
    kept = ("task", "messages", "max_tokens", "regex", "repeat")
    assert [getattr(there, one) for one in kept] == [getattr(asked, one) for one in kept]
    assert (there.answer is None) is (asked.answer is None)
    if asked.answer is not None:
        assert list(json.dumps(there.answer.model_json_schema())) == list(
            json.dumps(asked.answer.model_json_schema())
        )
        assert build_grammar_schema(there.answer) == build_grammar_schema(asked.answer)


@pytest.mark.parametrize(
    ("config", "sees"),
    [
        ({"architectures": ["Qwen2_5_VLForConditionalGeneration"], "vision_config": {}}, True),
        ({"architectures": ["QWenLMHeadModel"], "visual": {}}, True),
        ({"architectures": ["Phi3VForCausalLM"], "img_processor": {}}, True),
        ({"architectures": ["LlavaForConditionalGeneration"], "image_token_index": 7}, True),
        ({"architectures": ["LlamaForCausalLM"], "vocab_size": 8}, False),
        ({"architectures": ["OfItsOwn"]}, None),
        ({}, None),
        ([], None),
    ],
)
def test_a_config_tells_whether_a_model_reads_images(folder: Path, config: Any, sees: Any) -> None:
    """As the published configs of these families do; nothing is loaded."""
    (folder / "config.json").write_text(json.dumps(config))
    assert can_see_images(folder) is sees
    if config != []:
        for kind in KINDS:
            assert make_engine(kind, model=str(folder)).sees_images is sees  # type: ignore[attr-defined]
        blind = make_engine("vllm", model=str(folder), limit_images=0)
        assert blind.sees_images is False  # type: ignore[attr-defined]
