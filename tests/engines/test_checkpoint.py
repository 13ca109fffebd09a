"""Which weights a model's name stands for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from huggingface_hub import constants

from echo_hf.engines.checkpoint import Checkpoint, find_checkpoint
from echo_hf.errors import EngineError

COMMIT, OTHER = "a" * 40, "b" * 40
MODEL = "acme/judge"
WEIGHTS = bytes(range(256)) * 4096  # a megabyte


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the Hub's client with one model, and no network."""
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
    """A folder with a model."""
    model = tmp_path / "judge-7b"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "qwen2_5_vl"}')
    (model / "tokenizer.json").write_text("{}")
    (model / "chat_template.jinja").write_text("{{ messages }}")
    (model / "model.safetensors").write_bytes(WEIGHTS)
    return model


@pytest.mark.parametrize(
    ("revision", "commit", "family"),
    [
        (None, COMMIT, "qwen2_5_vl"),
        ("main", COMMIT, "qwen2_5_vl"),
        ("v2", OTHER, None),
        (OTHER, OTHER, None),
    ],
)
def test_a_name_stands_for_the_commit_in_the_cache(
    cache: Path, revision: str | None, commit: str, family: str | None
) -> None:
    """A branch and a tag are looked up without the network, and the commit says the family."""
    assert find_checkpoint(MODEL, revision) == Checkpoint(MODEL, MODEL, commit, family)
    assert find_checkpoint(MODEL, revision).commit == commit


def test_a_commit_needs_no_model(cache: Path) -> None:
    """Stored answers of a pinned commit are found where the model is not, the family by name."""
    found = find_checkpoint("Qwen/Qwen2.5-VL-3B-Instruct", "c" * 40)
    assert (found.revision, found.family) == ("c" * 40, "qwen2_5_vl")


@pytest.mark.parametrize("model", ["acme/absent", "./absent", "a b", "https://example.org/m"])
def test_an_unknown_model_is_told_in_one_line(cache: Path, model: str) -> None:
    """Its name, and what it was taken for."""
    with pytest.raises(EngineError) as caught:
        find_checkpoint(model)
    assert str(caught.value).startswith(f"no model {model!r} at revision 'main': neither a folder")
    assert "\n" not in str(caught.value)


def test_a_folder_is_known_by_what_it_holds(folder: Path, tmp_path: Path) -> None:
    """Its path decides nothing; there is no commit to load."""
    found = find_checkpoint(str(folder))
    moved = tmp_path / "elsewhere" / folder.name
    shutil.copytree(folder, moved)
    assert (found.name, found.commit, found.family) == ("judge-7b", None, "qwen2_5_vl")
    assert found.revision.startswith("sha256:")
    assert find_checkpoint(str(moved)).revision == found.revision


@pytest.mark.parametrize(
    "name",
    ["config.json", "tokenizer.json", "chat_template.jinja", "new.json", "model.safetensors"],
)
def test_a_changed_file_is_another_model(folder: Path, name: str) -> None:
    """Settings, tokenizer, template and weights all count, and so does one more file of them."""
    before = find_checkpoint(str(folder)).revision
    with (folder / name).open("ab") as file:
        file.write(b" ")
    assert find_checkpoint(str(folder)).revision != before


def test_weights_of_one_size_are_told_apart(folder: Path) -> None:
    """A further training changes numbers in every layer, not the size of the file."""
    before = find_checkpoint(str(folder)).revision
    (folder / "model.safetensors").write_bytes(bytes(255 - value for value in WEIGHTS))
    assert find_checkpoint(str(folder)).revision != before


def test_a_readme_decides_no_answer(folder: Path) -> None:
    """What no library reads does not count."""
    before = find_checkpoint(str(folder)).revision
    (folder / "README.md").write_text("Our judge.")
    (folder / ".gitattributes").write_text("*")
    assert find_checkpoint(str(folder)).revision == before


def test_a_folder_has_no_revision(folder: Path) -> None:
    """Asking for one is a mistake that would go unnoticed."""
    with pytest.raises(EngineError, match=r"is a folder, which has no revision 'v2': leave it out"):
        find_checkpoint(str(folder), "v2")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_folder_without_a_model_is_told(folder: Path, name: str) -> None:
    """Settings and weights must be there."""
    (folder / name).unlink()
    with pytest.raises(EngineError, match=r"holds no model: expected 'config\.json' and weights"):
        find_checkpoint(str(folder))
