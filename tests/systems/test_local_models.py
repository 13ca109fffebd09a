"""Models that run in this process: at hand or not, and which they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from huggingface_hub import constants

from echo_hf.errors import GenerationError
from echo_hf.systems.local_models import LocalModel, check_one_at_a_time, folder_digest
from tests.systems.tasks_for_tests import config

COMMIT = "c" * 40
INDEX = "model_index.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a model."""
    model = tmp_path / "lumen-1"
    (model / "vae").mkdir(parents=True)
    (model / INDEX).write_text("{}")
    (model / "README.md").write_text("A model.")
    (model / "vae" / "model.safetensors").write_bytes(bytes(100_000))
    return model


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the Hub's client that holds one model, and no network."""
    snapshot = tmp_path / "models--northlight--lumen" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / INDEX).write_text("{}")
    refs = snapshot.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text(COMMIT)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return snapshot


def _model(source: str | Path, revision: str | None = None) -> LocalModel:
    return LocalModel("tiny", str(source), revision, INDEX)


def _trouble(model: LocalModel) -> str:
    with pytest.raises(GenerationError) as caught:
        model.index_at_hand()
    return str(caught.value)


def test_a_folder_is_known_by_what_decides_an_image(folder: Path) -> None:
    """Settings and weights of all parts; neither its path nor a README."""
    first = _model(folder).identity
    assert first["model"] == "lumen-1"
    assert str(first["revision"]).startswith("sha256:")
    (folder / "README.md").write_text("A better model.")
    assert folder_digest(folder) == first["revision"]
    (folder.parent / "elsewhere").mkdir()
    moved = folder.rename(folder.parent / "elsewhere" / "lumen-1")
    assert _model(moved).identity == first


@pytest.mark.parametrize("place", [0, 50_001, 99_999])
def test_another_weight_is_another_model(folder: Path, place: int) -> None:
    """At the beginning, at the end, and where a training changes all of a layer."""
    before = folder_digest(folder)
    weights = bytearray(100_000)
    weights[max(0, place - 2000) : place + 2000] = b"\x01" * len(
        weights[max(0, place - 2000) : place + 2000]
    )
    (folder / "vae" / "model.safetensors").write_bytes(weights)
    assert folder_digest(folder) != before


def test_a_part_in_another_place_is_another_model(folder: Path) -> None:
    """The names of files count."""
    before = folder_digest(folder)
    (folder / "vae").rename(folder / "text_encoder")
    assert folder_digest(folder) != before


def test_hidden_files_count_for_nothing(folder: Path) -> None:
    """Such as the cache that a download leaves in a folder."""
    before = folder_digest(folder)
    (folder / ".cache").mkdir()
    (folder / ".cache" / "state.json").write_text("{}")
    assert folder_digest(folder) == before


def test_a_folder_is_at_hand(folder: Path) -> None:
    """Its index, and no commit."""
    assert _model(folder).index_at_hand() == folder / INDEX
    assert _model(folder).commit is None


def test_a_model_in_the_cache_is_at_hand(cache: Path) -> None:
    """A branch of it is known by name, and where its images come from by the commit."""
    model = _model("northlight/lumen")
    assert model.index_at_hand() == cache / INDEX
    assert model.commit == model.pinned == COMMIT
    assert model.identity == {"model": "northlight/lumen", "revision": "main"}
    assert _model("northlight/lumen", COMMIT).identity["revision"] == COMMIT


def test_a_model_on_the_hub_alone_is_not_downloaded(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a network it may be there: nothing is asked."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    assert _model("northlight/absent").index_at_hand() is None
    assert _model("northlight/absent").commit is None
    assert _model("northlight/absent", "v2").pinned == "v2"


def test_a_missing_model_is_told_in_one_line(cache: Path) -> None:
    """Without a network a model that is nowhere cannot come."""
    assert _trouble(_model("northlight/absent")) == (
        "system 'tiny': model 'northlight/absent' is neither a folder nor in the cache, and "
        "HF_HUB_OFFLINE is set: download it first, or unset that"
    )


def test_a_missing_folder_is_told_in_one_line() -> None:
    """What can be no name on the Hub is taken for a folder."""
    assert _trouble(_model("./models/absent")) == (
        "system 'tiny': there is no folder './models/absent': expected one, or a name on the Hub "
        "such as ORGANISATION/NAME"
    )


def test_a_folder_without_a_model_is_told_in_one_line(tmp_path: Path) -> None:
    """Its index is what is missing."""
    assert _trouble(_model(tmp_path)).endswith(
        "holds no 'model_index.json': expected a model as its library saves it"
    )


def test_a_folder_has_no_revision(folder: Path) -> None:
    """One that a config gives would say what is not so."""
    assert _trouble(_model(folder, "v2")).endswith("has no revision 'v2': leave it out")


def test_one_image_at_a_time() -> None:
    """A config that wants more is told before anything is loaded."""
    check_one_at_a_time(config("diffusers", "a/b", limits={"concurrency": 1}))
    check_one_at_a_time(config("diffusers", "a/b"))
    with pytest.raises(GenerationError, match=r"limits\.concurrency is 4: expected 1"):
        check_one_at_a_time(config("diffusers", "a/b", limits={"concurrency": 4}))
