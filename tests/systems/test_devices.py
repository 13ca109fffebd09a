"""Systems in a process a device: the same images as one process draws, and none lost or twice."""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from echo_hf.config.systems import SystemConfig
from echo_hf.errors import GenerationError
from echo_hf.pipeline.progress import NullProgress
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.systems.base import Task
from echo_hf.systems.diffusers import DiffusersSystem
from echo_hf.systems.journal import Journal
from echo_hf.systems.registry import make_system
from echo_hf.systems.runner import SystemRun
from echo_hf.tables import Outcome
from tests.systems import tiny_pipelines
from tests.systems.drawing_for_tests import blocks, config, image_file
from tests.systems.runs_for_tests import sha
from tests.systems.test_command import MISBEHAVING, task_of

WORKER = {"command": [sys.executable, "-S", str(MISBEHAVING)]}
VISIBLE = "CUDA_VISIBLE_DEVICES"
Gpus = Callable[[int], None]


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Gpus:
    """A machine with GPUs, as far as torch counts them."""

    def show(count: int) -> None:
        torch = ModuleType("torch")
        torch.__spec__ = ModuleSpec("torch", None)
        torch.cuda = SimpleNamespace(device_count=lambda: count)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "torch", torch)

    monkeypatch.delenv(VISIBLE, raising=False)
    return show


def command(devices: Any, **parameters: Any) -> SystemConfig:
    return config("command", {**WORKER, **parameters}, limits={"devices": devices})


def local(limits: dict[str, Any], device: str = "auto") -> SystemConfig:
    return config("diffusers", {"device": device}, limits=limits)


@pytest.mark.parametrize(
    ("devices", "count", "given", "seen"),
    [
        ("all", 2, None, {"0", "1"}),
        ([1], 2, None, {"1"}),
        (2, 3, "GPU-5a,6,7", {"GPU-5a", "6"}),
        (2, 0, None, {None}),
    ],
)
def test_each_worker_sees_the_device_that_is_its_own(
    devices: Any,
    count: int,
    given: str | None,
    seen: set[str | None],
    gpus: Gpus,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpus(count)
    if given is not None:
        monkeypatch.setenv(VISIBLE, given)
    system = make_system(command(devices))
    assert system.signature() == make_system(command(None)).signature()
    many = len(seen) if count else 2
    assert (system.preflight(), system.concurrency) == (None, many)
    tasks = [task_of("environment", sample_id=f"s{number}") for number in range(many)]
    with system, ThreadPoolExecutor(many) as threads:
        drawn = list(threads.map(system.draw, tasks))
    worlds = [one.details["worker_says"]["environment"] for one in drawn]
    assert {one.get(VISIBLE) for one in worlds} == seen
    assert len({one.text for one in drawn}) == many


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (command("all"), "limits.devices is 'all', and this machine shows no GPUs: expected all"),
        (command(2, workers=3), "limits.devices says how many workers run where: leave it out"),
        (command(2, environment={VISIBLE: "0"}), "limits.devices says how many workers run where"),
        (
            config("openai_images", {}, limits={"devices": 2}),
            "limits.devices is 2, and adapter 'openai_images' runs no model on devices of this",
        ),
        (local({"devices": 2, "concurrency": 3}), "limits.concurrency is 3: expected 2, as a mod"),
        (local({"devices": [0, 1], "concurrency": 1}), "limits.concurrency is 1: expected 2"),
        (local({"concurrency": 2}, "cuda:1"), "limits.concurrency is 2: expected 1"),
        (local({"devices": 2}, "cuda"), "parameters.device is 'cuda', and limits.devices says w"),
        (local({"devices": "all"}, "cpu"), "limits.devices is 'all', and this machine shows no"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(given: SystemConfig, said: str, gpus: Gpus) -> None:
    gpus(0)
    make = DiffusersSystem if given.adapter == "diffusers" else make_system
    with pytest.raises(GenerationError, match=f"^system 'tiny': {said}") as caught:
        make(given).preflight()
    assert "\n" not in str(caught.value)


def test_what_a_config_says_wrong_of_devices_is_told() -> None:
    for devices in ([], [0, 0], 0, "both", True, [-1]):
        with pytest.raises(ValueError, match="expected all, a number of processes such as 2, or"):
            command(devices)


def test_the_artist_of_a_rewriter_gets_the_devices(gpus: Gpus) -> None:
    gpus(0)
    writer = {"kind": "openai", "model": "tiny-writer", "base_url": "http://127.0.0.1:9/v1"}
    worker = {"adapter": "command", "parameters": WORKER}
    limits = {"devices": 3}
    given = {"writer": writer, "artist": worker}
    assert make_system(config("rewrite", given, model=None, limits=limits)).concurrency == 3
    hosted = {"adapter": "openai_images", "model": "tiny"}
    with pytest.raises(GenerationError, match="'openai_images' runs no model on devices of this"):
        make_system(config("rewrite", {**given, "artist": hosted}, limits=limits))


class Killing(NullProgress):
    """Kills a worker process once two images are there."""

    def report_progress(
        self, part: str, done: int, stats: object, total: int | None = None
    ) -> None:
        super().report_progress(part, done, stats, total)
        if done == 2:
            multiprocessing.active_children()[0].kill()


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")  # of the libraries that draw
def test_two_processes_draw_what_one_draws_and_a_killed_one_loses_nothing(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Byte for byte; every task has one line in the journal, and nothing is left to do."""
    for package in ("torch", "diffusers", "transformers", "accelerate"):
        pytest.importorskip(package, reason=tiny_pipelines.REASON)
    import torch

    # On a busy processor the threads of a sum, and so its last bit, are not always the same.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
    torch.set_num_threads(1)
    model = tiny_pipelines.write_tiny(tiny_pipelines.klein, tmp_path / "tiny-klein")
    call = {"num_inference_steps": 1, "max_sequence_length": 64, "text_encoder_out_layers": [1]}
    shown = (image_file(tmp_path, blocks((96, 64), 1)),)
    tasks = [
        Task(f"s{one}", sha(b"%d" % one), "image_to_image", f"fox {one}", shown * (one % 2))
        for one in range(6)
    ]

    def drawn(name: str, devices: int | None, watch: NullProgress) -> dict[str, Any]:
        given = config(
            "diffusers",
            {"call": call, "dtype": "float32"},
            model=str(model),
            size={"width": 64, "height": 48},
            limits={"devices": devices},
        )
        root = tmp_path / name
        run = SystemRun(given, make_system(given), RunFolder(root), tasks)
        run.run(None, None, watch)
        assert (run.stopped, multiprocessing.active_children()) == (None, [])
        lines = map(json.loads, Journal(root, given.name).path.read_text().splitlines())
        names = [line["sample_id"] for line in lines if "sample_id" in line]
        assert sorted(names) == [task.sample_id for task in tasks]
        assert SystemRun(given, make_system(given), RunFolder(root), tasks).plan.todo == ()
        timed = {"at", "latency_s"}
        return {
            name: {key: value for key, value in asdict(one).items() if key not in timed}
            for (name, _), one in Journal(root, given.name).entries.items()
        }

    one = drawn("one", None, NullProgress())
    assert {entry["outcome"] for entry in one.values()} == {Outcome.OK}
    assert len({entry["image"] for entry in one.values()}) == len(tasks)
    assert drawn("two", 2, NullProgress()) == one
    assert caplog.messages == []
    assert drawn("killed", 2, Killing()) == one
    (notice,) = caplog.messages
    assert "killed by signal 9; 1 go on with what it was at" in notice
