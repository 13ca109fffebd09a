"""Models that run in this process: at hand or not, which they are, and what goes wrong."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from echo_hf._infra.ray_pool import RayNodes, connect_cluster
from echo_hf.config.systems import SystemConfig
from echo_hf.errors import GenerationError
from echo_hf.systems.base import GenerationResult, Task
from echo_hf.systems.local_models import (
    LocalModel,
    LocalOptions,
    LocalSystem,
    choose_device,
    describe_model_error,
    hash_folder,
)
from echo_hf.tables import Outcome
from tests.errors_for_tests import said_by
from tests.systems.drawing_for_tests import config, task

COMMIT = "c" * 40
INDEX = "model_index.json"
REASON = "needs torch and accelerate: see `make test-extras`"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = tmp_path / "lumen-1"
    (model / "vae").mkdir(parents=True)
    (model / INDEX).write_text("{}")
    (model / "README.md").write_text("A model.")
    (model / "vae" / "model.safetensors").write_bytes(bytes(100_000))
    return model


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    snapshot = tmp_path / "models--northlight--lumen" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / INDEX).write_text("{}")
    refs = snapshot.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text(COMMIT)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return snapshot


def model(source: str | Path, revision: str | None = None) -> LocalModel:
    return LocalModel("tiny", str(source), revision, INDEX)


def test_a_folder_is_known_by_what_decides_an_image(folder: Path) -> None:
    first = model(folder).identity
    assert first["model"] == "lumen-1"
    assert str(first["revision"]).startswith("sha256:")
    (folder / "README.md").write_text("A better model.")
    (folder / ".cache").mkdir()
    (folder / ".cache" / "state.json").write_text("{}")
    (folder.parent / "elsewhere").mkdir()
    moved = folder.rename(folder.parent / "elsewhere" / "lumen-1")
    assert model(moved).identity == first
    assert (model(moved).find_index(), model(moved).commit) == (moved / INDEX, None)


@pytest.mark.parametrize("place", [0, 48_001, 96_000, None])
def test_another_weight_or_place_is_another_model(folder: Path, place: int | None) -> None:
    before = hash_folder(folder)
    weights = bytearray(100_000)
    if place is None:
        (folder / "vae").rename(folder / "text_encoder")
    else:
        weights[place : place + 4000] = b"\x01" * 4000
        (folder / "vae" / "model.safetensors").write_bytes(weights)
    assert hash_folder(folder) != before


def test_a_model_in_the_cache_is_at_hand(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = model("northlight/lumen")
    assert found.find_index() == found.fetch_index() == cache / INDEX
    assert found.commit == found.load_revision == COMMIT
    assert found.identity == {"model": "northlight/lumen", "revision": "main"}
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)  # what is there alone stays there
    absent = model("northlight/absent", "v2")
    assert (absent.find_index(), absent.commit, absent.load_revision) == (None, None, "v2")


def test_a_missing_model_is_one_line(cache: Path, folder: Path, tmp_path: Path) -> None:
    """Offline and not in the cache, no folder, an empty one, one with a revision."""
    missing = (("northlight/absent", None), ("./absent", None), (tmp_path, None), (folder, "v2"))
    for source, revision in missing:
        said = said_by(GenerationError, model(source, revision).find_index)
        assert f"no 'model_index.json' of model {str(source)!r} (revision {revision!r})" in said


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("no file /home/mira/.cache/hub/vae/config.json here", "no file config.json here"),
        ("\n\n  two lines\nof it", "two lines"),
        (r"cannot open C:\Users\mira\model.bin", "cannot open model.bin"),
        ("in '~/models/lumen/unet.py'", "in 'unet.py'"),
        ("see https://example.org/a.html, 3/4", "see https://example.org/a.html, 3/4"),
        ("x" * 1000, "x" * 300),
    ],
)
def test_a_message_is_one_line_without_folders(said: str, line: str) -> None:
    assert describe_model_error(ValueError(said)) == line


class Breaking(LocalSystem[LocalOptions, object]):
    expected, smaller, determinism = "a model", "a smaller one", "none"

    def __init__(self, config: SystemConfig, loading: Any = None, drawing: Any = None) -> None:
        super().__init__(config, LocalOptions(device="cpu"), INDEX)
        self.loading, self.drawing = loading, drawing

    def load(self, device: str) -> object:
        if self.loading:
            raise self.loading
        return device

    def check_task(self, *_: Any) -> None:
        """Takes every task."""

    def draw_with(self, *_: Any) -> GenerationResult:
        raise self.drawing


class Drawing(Breaking):
    """Draws what it is told, and who it is."""

    def draw_with(self, loaded: object, task: Task, *_: Any) -> GenerationResult:
        return GenerationResult(Outcome.OK, task.prompt.encode(), text=f"{loaded} {os.getpid()}")


@pytest.mark.extras
@pytest.mark.xdist_group("ray")
@pytest.mark.filterwarnings("ignore")
def test_workers_of_a_cluster_draw_at_the_same_time(ray_cluster: Any, tmp_path: Path) -> None:
    with connect_cluster(ray_cluster.address):
        nodes = RayNodes(gpus=0, cpus=0.3, micro_batch=1, folder=tmp_path)
        with Drawing(config("any", {}, model="a/b")) as system:
            system.work_at([nodes] * 2)
            assert system.concurrency == 2
            with ThreadPoolExecutor(2) as pool:
                drawn = list(pool.map(system.draw, [task()] * 8))
        nodes.close()
    assert {(one.outcome, one.image) for one in drawn} == {(Outcome.OK, task().prompt.encode())}
    places = {str(one.text).partition(" ")[::2] for one in drawn}
    assert {device for device, _ in places} == {"cpu"}
    assert str(os.getpid()) not in {process for _, process in places}


def test_devices_of_this_machine_are_none_of_a_cluster() -> None:
    system = Breaking(config("any", {}, model="a/b", limits={"devices": 2}))
    with pytest.raises(GenerationError, match=r"limits.devices is 2, which are of this machine, a"):
        system.work_at([])


@pytest.mark.extras
def test_a_breakdown_is_a_failure_with_its_name() -> None:
    torch = pytest.importorskip("torch", reason=REASON)
    pytest.importorskip("accelerate", reason=REASON)
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    odd = ValueError("height has to be 16\nTraceback")
    for error, code in ((odd, "ValueError"), (caught.value, "out_of_memory")):
        drawn = Breaking(config("any", {}, model="a/b"), drawing=error).draw(task())
        assert (str(drawn.outcome), str(drawn.stage), drawn.code) == ("failed", "request", code)
    with pytest.raises(GenerationError, match="'a/b' does not fit into memory: use a smaller one"):
        Breaking(
            config("any", {}, model="a/b"), torch.OutOfMemoryError("CUDA out of memory.")
        ).draw(task())
    said = said_by(GenerationError, Breaking(config("any", {}, model="a/b"), odd).draw, task())
    assert "cannot load 'a/b' (ValueError: height has to be" in said


@pytest.mark.extras
def test_a_device_that_is_not_there_is_told() -> None:
    torch = pytest.importorskip("torch", reason=REASON)
    assert choose_device(LocalOptions(device="cpu"), "system 'tiny'") == "cpu"
    if not torch.accelerator.is_available():
        assert choose_device(LocalOptions(), "system 'tiny'") == "cpu"
    with pytest.raises(GenerationError, match="device is 'cuda:99', which this machine does not"):
        choose_device(LocalOptions(device="cuda:99"), "system 'tiny'")
