"""Which weights a model's name stands for, whose rule its images follow, and its signature."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from echo_hf.engines.base import make_engine
from echo_hf.engines.checkpoint import (
    FAMILIES,
    Budget,
    Checkpoint,
    budget_of,
    family_of,
    find_checkpoint,
)
from echo_hf.errors import EngineError, MissingExtraError
from tests.stages_for_tests import ROOT, request

COMMIT, OTHER = "a" * 40, "b" * 40
MODEL = "acme/judge"
WEIGHTS = bytes(range(256)) * 4096  # a megabyte
KINDS = ("vllm", "transformers")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    repository = tmp_path / "hub" / "models--acme--judge"
    for commit, kind in ((COMMIT, "qwen2_5_vl"), (OTHER, "llama")):
        snapshot = repository / "snapshots" / commit
        snapshot.mkdir(parents=True)
        (snapshot / "config.json").write_text(json.dumps({"model_type": kind}))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    (repository / "refs" / "v2").write_text(OTHER)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return repository


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
@pytest.mark.parametrize(
    ("model", "revision", "commit", "family"),
    [
        (MODEL, None, COMMIT, "qwen2_5_vl"),
        (MODEL, "main", COMMIT, "qwen2_5_vl"),
        (MODEL, "v2", OTHER, None),
        (MODEL, OTHER, OTHER, None),
        # Stored answers of a pinned commit are found where the model is not, the family by name.
        ("Qwen/Qwen2.5-VL-3B-Instruct", "c" * 40, "c" * 40, "qwen2_5_vl"),
    ],
)
def test_a_name_stands_for_the_commit_in_the_cache(
    model: str, revision: str | None, commit: str, family: str | None
) -> None:
    found = find_checkpoint(model, revision)
    assert found == Checkpoint(model, model, commit, family)
    assert found.commit == commit


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("model", ["acme/absent", "./absent", "a b", "https://example.org/m"])
def test_an_unknown_model_is_told_in_one_line(model: str) -> None:
    with pytest.raises(EngineError) as caught:
        find_checkpoint(model)
    assert str(caught.value).startswith(f"no model {model!r} at revision 'main': neither a folder")
    assert "\n" not in str(caught.value)


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


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *((name, b" ") for name in ("config.json", "tokenizer.json", "chat_template.jinja")),
        ("new.json", b" "),
        ("model.safetensors", WEIGHTS),
        ("model.safetensors", bytes(255 - value for value in WEIGHTS)),
    ],
)
def test_a_changed_file_is_another_model(folder: Path, name: str, data: bytes) -> None:
    before = find_checkpoint(str(folder)).revision
    old = (folder / name).read_bytes() if (folder / name).exists() else b""
    (folder / name).write_bytes(data if len(data) == len(old) != 1 else old + data)
    found = find_checkpoint(str(folder)).revision
    assert (found == before) is (data == WEIGHTS)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_folder_without_a_model_is_told(folder: Path, name: str) -> None:
    """Settings and weights must be there."""
    (folder / name).unlink()
    with pytest.raises(EngineError, match=r"holds no model: expected 'config\.json' and weights"):
        find_checkpoint(str(folder))


# --- families ---


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("Qwen/Qwen2.5-VL-72B-Instruct-AWQ", "qwen2_5_vl"),
        ("unsloth/qwen2.5-vl-7b-instruct-bnb-4bit", "qwen2_5_vl"),
        ("Qwen/Qwen2-VL-7B-Instruct", "qwen2_vl"),
        ("Qwen/Qwen3-VL-30B-A3B-Instruct-FP8", "qwen3_vl"),
        ("Qwen/Qwen3.5-27B", "qwen3_vl"),
        ("qwen2_vl", "qwen2_vl"),
        ("qwen2_5_vl", "qwen2_5_vl"),
        ("qwen3_vl_moe", "qwen3_vl"),
        ("qwen3_5_moe", "qwen3_vl"),
        ("Qwen/Qwen2.5-7B-Instruct", None),
        ("Qwen/Qwen3-32B", None),
        ("Qwen/Qwen-VL-Chat", None),
        ("meta-llama/Llama-Guard-4-12B", None),
        ("gpt-4o-2024-11-20", None),
        ("", None),
    ],
)
def test_a_family_is_told_by_name_or_type(model: str, family: str | None) -> None:
    assert family_of(model) == family


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ('{"model_type": "qwen2_5_vl"}', "qwen2_5_vl"),
        ('{"model_type": "gemma3"}', None),
        ('{"model_type": null}', None),
        ("{", EngineError),
        ("[]", EngineError),
        ("\x80", EngineError),
    ],
)
def test_a_folder_is_told_by_its_configuration(tmp_path: Path, text: str, family: Any) -> None:
    folder = tmp_path / "Qwen3-VL-finetuned"
    folder.mkdir()
    (folder / "config.json").write_bytes(text.encode("latin-1"))
    if family is EngineError:
        with pytest.raises(EngineError, match=r"^cannot read '.*config\.json': "):
            family_of(str(folder))
    else:
        assert family_of(str(folder)) == family


@pytest.mark.parametrize(
    ("family", "least", "most", "budget"),
    [
        # What the published checkpoints' preprocessor settings say, in pixels.
        ("qwen2_vl", None, None, Budget(28, 3136, 12_845_056)),
        ("qwen2_5_vl", None, None, Budget(28, 3136, 12_845_056)),
        ("qwen3_vl", None, None, Budget(32, 65_536, 16_777_216)),
        ("qwen2_5_vl", None, 602_112, Budget(28, 3136, 602_112)),
        ("qwen3_vl", 4096, None, Budget(32, 4096, 16_777_216)),
        (None, None, None, Budget(1, 1, None)),
        (None, None, 5, Budget(1, 1, 5)),
        ("qwen2_5_vl", 0, None, None),
        ("qwen2_5_vl", None, 3135, None),
        ("qwen2_5_vl", 100, 783, None),
        ("qwen3_vl", 16_777_217, None, None),
        (None, 6, 5, None),
        (None, None, 0, None),
    ],
)
def test_what_is_asked_for_replaces_the_familys_own(
    family: str | None, least: int | None, most: int | None, budget: Budget | None
) -> None:
    if budget is not None:
        assert budget_of(family, least, most) == budget
    else:
        with pytest.raises(EngineError, match=r"^no image has min_pixels \d+ and max_pixels \S+:"):
            budget_of(family, least, most)


def test_an_unknown_family_is_told_with_the_nearest() -> None:
    said = r"^unknown family 'qwen25_vl'; did you mean 'qwen2_5_vl'\? known: qwen2_5_vl, qwen2_vl, "
    with pytest.raises(EngineError, match=said):
        budget_of("qwen25_vl")
    assert list(FAMILIES) == ["qwen2_vl", "qwen2_5_vl", "qwen3_vl"]


# --- what decides an answer, and what a config may say ---


def signature(kind: str, folder: Path, **options: Any) -> dict[str, Any]:
    return dict(make_engine(kind, model=str(folder), **options).signature())


COMMON = {
    "model": "judge-7b",
    "dtype": "auto",
    "sampling": {"temperature": 0.0},
    "pixels": [28, 3136, 1_003_520],
    "chat_template": None,
    "chat_template_kwargs": {},
}
VLLM = {"quantization": None, "kv_cache_dtype": "auto", "max_model_len": None}


@pytest.mark.parametrize(
    ("kind", "options", "more"),
    [
        ("vllm", {}, {**VLLM, "structured": "xgrammar"}),
        ("transformers", {"structured": "none"}, {"structured": None}),
    ],
)
def test_a_signature_is_plain_and_whole(
    folder: Path, kind: str, options: dict[str, Any], more: dict[str, Any]
) -> None:
    said = signature(kind, folder, **options)
    assert json.loads(json.dumps(said)) == said
    assert said.pop("revision").startswith("sha256:")
    if kind == "transformers":
        assert "JSON" in said.pop("schema_words")
    assert said == {"kind": kind, **COMMON, **more}


SAME = [
    {"seed": 3, "top_p": 0.5},  # nothing is drawn at temperature 0
    {"min_pixels": 3136},  # the family's own
    {"family": "qwen2_5_vl"},
]
SAME_VLLM = [
    {"max_num_seqs": 2},
    {"gpu_memory_utilization": 0.5},
    {"tensor_parallel_size": 2},
    {"limit_images": 1},
    {"enforce_eager": True},
]
OTHERS: list[dict[str, Any]] = [
    {"dtype": "float16"},
    {"max_pixels": 50_176},
    {"min_pixels": 50_176},
    {"family": "qwen3_vl"},
    {"temperature": 0.7},
    {"temperature": 0.7, "seed": 1},
    {"temperature": 0.7, "top_p": 0.9},
    {"chat_template_kwargs": {"enable_thinking": False}},
]
OTHERS_VLLM = [
    {"quantization": "fp8"},
    {"kv_cache_dtype": "fp8"},
    {"max_model_len": 4096},
    {"structured": False},
]


@pytest.mark.parametrize("kind", KINDS)
def test_what_decides_an_answer_is_in_it(folder: Path, kind: str) -> None:
    own, is_vllm = signature(kind, folder), kind == "vllm"
    for options in (*SAME, *(SAME_VLLM if is_vllm else [{"batch_size": 2}])):
        assert signature(kind, folder, **options) == own
    made = [own, *(signature(kind, folder, **one) for one in OTHERS)]
    made += [signature(kind, folder, **one) for one in OTHERS_VLLM if is_vllm]
    template = folder.parent / "a.jinja2"
    for text in ("x", "y"):
        template.write_text(text)
        made.append(signature(kind, folder, chat_template=str(template)))
    assert len({str(one) for one in made}) == len(made)
    copy = template.with_name("b.jinja2")
    copy.write_text("y")
    assert signature(kind, folder, chat_template=str(copy)) == made[-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "model is missing: field required"),
        ({"modle": MODEL}, "unknown key 'modle'; did you mean 'model'? known: "),
        ({"model": ""}, "model is '': string should have at least 1 character"),
        ({"dtype": "fp16"}, "dtype is 'fp16': input should be 'auto', 'bfloat16'"),
        ({"temperature": -0.1}, "temperature is -0.1: input should be greater"),
        ({"temperature": float("nan")}, "temperature is nan: "),
        ({"temperature": True}, "temperature is True: "),
        ({"top_p": 1.5}, "top_p is 1.5: input should be less than or equal to 1"),
        ({"seed": "1"}, "seed is '1': "),
        ({"max_pixels": 0}, "max_pixels is 0: "),
        ({"family": "qwen25"}, "unknown family 'qwen25'; did you mean 'qwen"),
        ({"chat_template": "absent.jinja"}, "chat_template is 'absent.jinja': path"),
        ({"chat_template_kwargs": [1]}, "chat_template_kwargs is [1]: "),
        # It would run what strangers wrote.
        ({"trust_remote_code": True}, "unknown key 'trust_remote_code'"),
    ],
)
def test_a_bad_option_is_one_line(kind: str, given: dict[str, Any], said: str) -> None:
    options = given if given in ({}, {"modle": MODEL}) else {"model": MODEL} | given
    with pytest.raises(EngineError) as caught:
        make_engine(kind, **options)
    assert str(caught.value).startswith(f"engine {kind!r}: {said}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        ("vllm", {"max_num_seqs": 0}, "engine 'vllm': max_num_seqs is 0: input should be greater"),
        ("vllm", {"max_num_seqs": "16"}, "engine 'vllm': max_num_seqs is '16': input should be a "),
        ("vllm", {"structured": "yes"}, "engine 'vllm': structured is 'yes': input should be a "),
        ("vllm", {"gpu_memory_utilization": 0}, "engine 'vllm': gpu_memory_utilization is 0: "),
        ("transformers", {"batch_size": 0}, "engine 'transformers': batch_size is 0: "),
        ("transformers", {"structured": True}, "engine 'transformers': structured is True: "),
        ("vllm", {"min_pixels": 900, "max_pixels": 100}, "no image has min_pixels 900 and "),
    ],
)
def test_a_bad_option_of_one_engine_is_one_line(
    kind: str, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(EngineError) as caught:
        make_engine(kind, model=MODEL, **given)
    assert str(caught.value).startswith(said)
    options = make_engine(kind, model=MODEL, temperature=0).options  # type: ignore[attr-defined]
    assert (options.temperature, options.max_pixels, options.dtype) == (0.0, 1_003_520, "auto")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_heavy_waits_for_the_first_request(
    folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"""
import sys
from echo_hf.engines.base import make_engine
with make_engine({kind!r}, model={str(folder)!r}) as engine:
    engine.signature()
    assert list(engine.stream([])) == []
print(*{{"torch", "transformers", "accelerate", "xgrammar", "vllm"}} & set(sys.modules))
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
    monkeypatch.setattr("echo_hf._infra.registry.find_spec", lambda _: None)
    options = {} if kind == "vllm" else {"structured": "none"}
    with make_engine(kind, model=str(folder), **options) as engine:
        said = rf'pip install "echo-hf\[{kind}\]"'
        with pytest.raises(MissingExtraError, match=said):
            next(engine.stream([request("red")]))
