"""Worker processes that work: what they are given, and what becomes of what they give."""

from __future__ import annotations

import io
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import ImageRef
from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, Task
from echo_hf.systems.command import CommandSystem
from echo_hf.systems.registry import make_system
from tests.images_for_tests import encoded, noise
from tests.package.blocks import blocks
from tests.stages_for_tests import ROOT
from tests.systems.command.commands_for_tests import (
    color_of,
    command_config,
    command_system,
    ends,
    task_of,
)


def color(drawn: GenerationResult) -> tuple[int, ...]:
    """The color of an image of one color."""
    assert drawn.image is not None, drawn
    with Image.open(io.BytesIO(drawn.image)) as image:
        found = image.convert("RGB").getpixel((0, 0))
    assert isinstance(found, tuple)
    return found


def painter(drawn: GenerationResult) -> int:
    """The number of the process that answered."""
    return int(str(drawn.text).removeprefix("by "))


def test_an_image_and_what_is_said_of_it_come_back() -> None:
    """The bytes are the worker's own; its name, its words and the seed come with them."""
    with command_system() as system:
        drawn = system.draw(task_of("a red kite"))
    assert drawn.outcome is Outcome.OK
    assert color(drawn) == color_of("a red kite")
    assert (drawn.stage, drawn.seed) == (None, 7)
    said = {"name": "misbehaving", "version": "7", "determinism": "all of it"}
    assert drawn.details["worker"] == said
    assert system.determinism == "all of it"


def test_the_seed_reaches_the_worker() -> None:
    """Another seed in the config is another image."""
    drawn = []
    for seed in (1, 2):
        with command_system(seed=seed) as system:
            drawn.append(color(system.draw(task_of("a kite"))))
    assert drawn == [color_of("a kite", seed=1), color_of("a kite", seed=2)]


def test_inputs_arrive_in_order_as_files_with_the_right_bytes(tmp_path: Path) -> None:
    """Two inputs of two formats, in both orders; the store's files have no suffix."""
    png, jpeg = encoded(noise((8, 6)), "PNG"), encoded(noise((6, 8)), "JPEG")
    (tmp_path / "one").write_bytes(png)
    (tmp_path / "two").write_bytes(jpeg)
    one, two = tmp_path / "one", tmp_path / "two"
    with command_system() as system:
        there = system.draw(task_of("echo", one, two))
        back = system.draw(task_of("echo", two, one))
    assert color(there) == color_of("echo", png, jpeg)
    assert color(back) == color_of("echo", jpeg, png)
    paths = there.details["worker_says"]["request"]["inputs"]
    assert [Path(path).suffix for path in paths] == [".png", ".jpg"]


def test_a_worker_cannot_change_the_store(tmp_path: Path) -> None:
    """It has copies, in a folder that is gone after its answer."""
    data = encoded(noise((8, 6)), "PNG")
    (tmp_path / "one").write_bytes(data)
    with command_system() as system:
        drawn = system.draw(task_of("echo", tmp_path / "one"))
        assert system.draw(task_of("scribble", tmp_path / "one")).outcome is Outcome.OK
    assert (tmp_path / "one").read_bytes() == data
    assert not Path(drawn.details["worker_says"]["request"]["inputs"][0]).parent.exists()


def test_a_request_holds_what_the_protocol_says() -> None:
    """Nothing more, whatever characters the prompt has."""
    config = command_config(parameters={"steps": 30}).model_copy(update={"size": "match_input"})
    prompt = 'echo "ein Bär"\u2028\n{"id": 1}'
    with CommandSystem(config) as system:
        drawn = system.draw(task_of(prompt))
        fixed = config.model_dump() | {"size": {"width": 64, "height": 48}}
        with CommandSystem(SystemConfig(**fixed)) as other:
            size = other.draw(task_of(prompt)).details["worker_says"]["request"]["size"]
    request = drawn.details["worker_says"]["request"]
    assert Path(request.pop("output")).name == "output.png"
    assert request == {
        "id": "a1",
        "prompt": prompt,
        "inputs": [],
        "seed": 7,
        "size": "match_input",
        "parameters": {"steps": 30},
    }
    assert size == {"width": 64, "height": 48}


def test_no_key_of_the_parent_reaches_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what programs need, what the config sets, and what it passes on by name."""
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "SHOP_KEY", "PYTHONPATH"):
        monkeypatch.setenv(name, f"value of {name}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with command_system(environment={"STEPS": "5"}, pass_environment=["SHOP_KEY"]) as system:
        found = system.draw(task_of("environment")).details["worker_says"]["environment"]
    assert not {"OPENAI_API_KEY", "HF_TOKEN", "PYTHONPATH"} & set(found)
    assert (found["STEPS"], found["CUDA_VISIBLE_DEVICES"]) == ("5", "1")
    # It is there, and hidden in the answer: what a worker says is kept.
    assert found["SHOP_KEY"] == "$SHOP_KEY"


def test_a_worker_runs_in_its_folder(tmp_path: Path) -> None:
    """`folder` is where relative paths of the worker start."""
    with command_system(folder=str(tmp_path)) as system:
        drawn = system.draw(task_of("environment"))
    assert drawn.details["worker_says"]["folder"] == str(tmp_path.resolve())


def test_what_libraries_print_is_no_answer() -> None:
    """Lines that are no object with an id, and more of standard error than a pipe holds."""
    with command_system() as system:
        first, second = (system.draw(task_of("chatter")) for _ in range(2))
    assert color(first) == color(second) == color_of("chatter")


@pytest.mark.parametrize(
    ("said", "outcome", "stage"),
    [
        ({"outcome": "refused", "code": "E7"}, Outcome.REFUSED, OutcomeStage.INPUT),
        ({"outcome": "refused", "stage": "output"}, Outcome.REFUSED, OutcomeStage.OUTPUT),
        ({"outcome": "no_image"}, Outcome.NO_IMAGE, OutcomeStage.ANSWER),
        ({"outcome": "failed"}, Outcome.FAILED, OutcomeStage.REQUEST),
        ({"outcome": "unsupported"}, Outcome.UNSUPPORTED, OutcomeStage.TASK),
        ({"outcome": "retired"}, Outcome.RETIRED, OutcomeStage.PREFLIGHT),
    ],
)
def test_outcomes_without_an_image(
    said: dict[str, Any], outcome: Outcome, stage: OutcomeStage
) -> None:
    """Each ends where it says, or else where such an outcome does, and keeps no image."""
    with command_system() as system:
        drawn = system.draw(task_of(f"say {json.dumps(said)}"))
    assert (drawn.outcome, drawn.stage, drawn.code) == (outcome, stage, said.get("code"))
    assert drawn.image is None


def test_more_inputs_than_the_worker_takes_are_unsupported(tmp_path: Path) -> None:
    """The config's word counts, or else the worker's; the task is not sent."""
    (tmp_path / "one").write_bytes(encoded(noise((8, 6)), "PNG"))
    task = task_of("kite", tmp_path / "one", tmp_path / "one")
    with command_system(environment={"HELLO_MORE": '{"most_inputs": 1}'}) as system:
        drawn = system.draw(task)
        assert system.draw(task_of("kite", tmp_path / "one")).outcome is Outcome.OK
    assert (drawn.outcome, drawn.stage) == (Outcome.UNSUPPORTED, OutcomeStage.TASK)
    assert drawn.text == "the task has 2 input images, and the worker takes at most 1"
    with command_system(most_inputs=2, environment={"HELLO_MORE": '{"most_inputs": 1}'}) as system:
        assert system.draw(task).outcome is Outcome.OK


@pytest.mark.parametrize("file", [None, Path("/nowhere/input")])
def test_an_input_that_is_not_there_fails_the_task(file: Path | None) -> None:
    """The next task is drawn."""
    task = Task("a1", "0" * 64, "image_to_image", "kite", (ImageRef("0" * 64, file),))
    with command_system() as system:
        drawn = system.draw(task)
        assert system.draw(task_of("kite")).outcome is Outcome.OK
    assert (drawn.outcome, drawn.code) == (Outcome.FAILED, "no_input")


def test_workers_share_the_tasks() -> None:
    """Two at a time, each its own process; each task has its own image, in any order."""
    prompts = [f"kite {number}" for number in range(12)]
    with command_system(workers=2) as system, ThreadPoolExecutor(4) as threads:
        assert system.concurrency == 2
        drawn = list(threads.map(system.draw, [task_of(one, sample_id=one) for one in prompts]))
    assert [color(one) for one in drawn] == [color_of(one) for one in prompts]
    assert len({painter(one) for one in drawn}) == 2


def test_leaving_ends_the_workers() -> None:
    """All of them, and entering again starts others; nothing starts before the first task."""
    system = command_system()
    painters = []
    for _ in range(2):
        with system:
            painters.append(painter(system.draw(task_of("kite"))))
        assert ends(painters[-1])
    assert len(set(painters)) == 2
    with pytest.raises(GenerationError, match="have been ended"):
        system.draw(task_of("kite"))


def test_an_exception_ends_the_workers_too() -> None:
    """As leaving does."""
    numbers = []

    def interrupted() -> None:
        with command_system() as system:
            numbers.append(painter(system.draw(task_of("kite"))))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert ends(numbers[0])


def test_the_worker_of_the_documentation_works(tmp_path: Path) -> None:
    """As it stands there; this Python has what it imports."""
    text = (ROOT / "docs/how-to/command.md").read_text("utf-8")
    (script,) = blocks(text, "python")
    (tmp_path / "worker.py").write_text(script.text)
    command = {"command": [sys.executable, "worker.py"], "folder": str(tmp_path)}
    config = command_config().model_copy(update={"parameters": command})
    system = make_system(config)
    assert system.preflight() is None
    with system:
        drawn = system.draw(task_of("kite"))
    assert color(drawn) == (7, 0, 0)
