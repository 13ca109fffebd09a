"""What holds for a system of every kind, at work in a run."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import ImageRef
from echo_hf.pipeline.progress import NullProgress
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.systems.base import Task
from echo_hf.systems.journal import Journal, JournalEntry
from echo_hf.systems.registry import make_system
from echo_hf.systems.runner import SystemRun
from echo_hf.tables import Outcome
from tests.engines.openai.loopback_server import Answer, Asked, LoopbackServer, completion
from tests.systems import drawing_for_tests as drawing
from tests.systems.runs_for_tests import png, sha
from tests.systems.test_command import MISBEHAVING

PROMPTS = [f"a red kite over the sea, {number}" for number in range(4)]
BAD = "blank"


@dataclass(frozen=True)
class Kind:
    """A kind of system, and how the task that it fails at ends."""

    adapter: str
    parameters: dict[str, Any]
    stage: str
    code: str | None
    more: dict[str, Any] = field(default_factory=dict)

    def config(self, seed: int) -> SystemConfig:
        return drawing.config(self.adapter, self.parameters, seed=seed, **self.more)


def tasks_in(folder: Path) -> list[Task]:
    gone = ImageRef("f" * 64, folder / "gone.png")
    return [
        Task(f"s{number}", sha(prompt.encode()), "text_to_image", prompt, inputs)
        for number, (prompt, inputs) in enumerate([*((one, ()) for one in PROMPTS), (BAD, (gone,))])
    ]


def files(folder: Path, _: LoopbackServer) -> Kind:
    place = folder / "made before" / "text_to_image" / "tiny"
    place.mkdir(parents=True)
    for number, prompt in enumerate(PROMPTS):
        (place / f"s{number}.png").write_bytes(png(prompt))
    parameters = {"folder": str(folder / "made before")}
    return Kind("files", parameters, "request", "no_file")


def command(folder: Path, _: LoopbackServer) -> Kind:
    parameters = {"command": [sys.executable, "-S", str(MISBEHAVING)], "workers": 2}
    return Kind("command", parameters, "request", "no_input")


def openai_images(folder: Path, server: LoopbackServer) -> Kind:
    server.behave = lambda asked: drawing.image_answer(png(repr(sorted(asked.body.items()))))
    parameters = {"base_url": server.url, "send_seed": True}
    return Kind("openai_images", parameters, "request", "input")


def google(folder: Path, server: LoopbackServer) -> Kind:
    def behave(asked: Asked) -> Answer:
        image = png(json.dumps(asked.body, sort_keys=True))
        return drawing.google_answer(drawing.google_image(image))

    server.behave = behave
    parameters = {"base_url": server.url.removesuffix("/v1")}
    return Kind("google", parameters, "request", "input")


def rewrite(folder: Path, server: LoopbackServer) -> Kind:
    def behave(asked: Asked) -> Answer:
        if not asked.path.endswith("/chat/completions"):
            return drawing.image_answer(png(repr(sorted(asked.body.items()))))
        user = asked.body["messages"][1]["content"]
        return completion(json.dumps({"prompt": f"a painting of {user}"}))

    server.behave = behave
    url, own = {"base_url": server.url}, {"base_url": server.url, "send_seed": True}
    parameters = {
        "writer": {"kind": "openai", "model": "tiny-writer", "backoff_s": 0.001, **url},
        "artist": {"adapter": "openai_images", "model": "tiny-artist", "parameters": own},
    }
    return Kind("rewrite", parameters, "request", "writer_engine_error")


def diffusers(folder: Path, _: LoopbackServer) -> Kind:
    for package in ("torch", "diffusers", "transformers", "accelerate"):
        pytest.importorskip(package, exc_type=ImportError)
    from tests.systems.tiny_pipelines import klein, write_tiny

    model = str(write_tiny(klein, folder / "tiny-klein"))
    call = {"num_inference_steps": 1, "max_sequence_length": 64, "text_encoder_out_layers": [1]}
    parameters = {"call": call, "dtype": "float32", "device": "cpu"}
    more = {"model": model, "size": {"width": 64, "height": 48}}
    return Kind("diffusers", parameters, "input", None, more)


def anole(folder: Path, _: LoopbackServer) -> Kind:
    for package in ("torch", "transformers", "accelerate"):
        pytest.importorskip(package, exc_type=ImportError)
    from tests.systems.tiny_anole import write_tiny_anole

    model = write_tiny_anole(folder / "tiny-anole")
    parameters = {"decoder": str(model / "decoder"), "dtype": "float32", "device": "cpu"}
    return Kind("anole", parameters, "input", None, {"model": str(model)})


CORE, EXTRAS = (files, command, openai_images, rewrite), (google, diffusers, anole)


@pytest.fixture(
    params=[*CORE, *(pytest.param(one, marks=pytest.mark.extras) for one in EXTRAS)],
    ids=lambda one: one.__name__,
)
def kind(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    server: LoopbackServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Kind:
    if request.param is google:
        pytest.importorskip("google.genai")
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, drawing.KEY)
    made: Kind = request.param(tmp_path, server)
    return made


def run(
    root: Path, config: SystemConfig, tasks: list[Task], watch: NullProgress | None = None
) -> tuple[list[str], dict[str, JournalEntry]]:
    """Draws what is left of tasks; gives what was asked for, and all that is known since."""
    asked, system = list[str](), make_system(config)
    draw = system.draw

    def counting(task: Task) -> Any:
        asked.append(task.sample_id)
        return draw(task)

    system.draw = counting  # type: ignore[method-assign]
    one = SystemRun(config, system, RunFolder(root), tasks)
    one.run(None, None, watch or NullProgress())
    assert one.stopped is None
    return asked, {name: entry for (name, _), entry in Journal(root, config.name).entries.items()}


def test_every_task_gets_its_own_image_whatever_the_order(kind: Kind, tmp_path: Path) -> None:
    *good, _ = tasks_in(tmp_path)
    config = kind.config(0)
    there = run(tmp_path / "there", config, good)[1]
    back = run(tmp_path / "back", config, good[::-1])[1]
    assert {one.outcome for one in there.values()} == {Outcome.OK}
    assert len({one.image for one in there.values()}) == len(good)
    for task in good:
        entry = there[task.sample_id]
        assert entry.image == back[task.sample_id].image
        assert (entry.sample_digest, entry.split) == (task.sample_digest, task.split)
        assert (RunFolder(tmp_path / "there").images.path(entry.image or "")).is_file()


def test_a_seed_is_told_and_decides_the_image(kind: Kind, tmp_path: Path) -> None:
    first, other = (kind.config(seed) for seed in (0, 1))
    signatures = [make_system(one).signature() for one in (first, first, other)]
    assert signatures[0] == signatures[1]
    takes_seed = kind.adapter != "files"
    assert (signatures[0] != signatures[2]) is takes_seed
    json.dumps(signatures)
    if takes_seed:
        (task, *_) = tasks_in(tmp_path)
        drawn = [run(tmp_path / str(one.seed), one, [task])[1]["s0"] for one in (first, other)]
        assert [one.seed for one in drawn] == [0, 1]
        assert drawn[0].image != drawn[1].image


def test_another_draw_has_the_next_seed_and_its_own_image(kind: Kind, tmp_path: Path) -> None:
    """Its signature is that of the first, and its seed that of a config with the next number."""
    (task, *_), config = tasks_in(tmp_path), kind.config(7)
    if kind.adapter == "files":
        folder = Path(kind.parameters["folder"]) / "text_to_image" / "tiny"
        (folder / "s0.1.png").write_bytes(png("another"))
    work = SystemRun(config, make_system(config), RunFolder(tmp_path / "two"), [task], outputs=2)
    work.run(None, None, NullProgress())
    entries = Journal(tmp_path / "two", config.name).entries
    first, second = entries["s0", 0], entries["s0", 1]
    assert (first.outcome, second.outcome) == (Outcome.OK, Outcome.OK)
    assert first.signature == second.signature
    assert first.image != second.image
    if kind.adapter != "files":
        assert (first.seed, second.seed) == (7, 8)
        assert second.image == run(tmp_path / "next", kind.config(8), [task])[1]["s0"].image
    again = SystemRun(config, make_system(config), RunFolder(tmp_path / "two"), [task], outputs=2)
    assert again.plan.todo == ()


def test_a_failure_is_typed_and_alone_is_asked_again(kind: Kind, tmp_path: Path) -> None:
    config, tasks = kind.config(0), tasks_in(tmp_path)
    *good, bad = (task.sample_id for task in tasks)
    asked, found = run(tmp_path, config, tasks)
    assert sorted(asked) == sorted([*good, bad])
    ended = (found[bad].outcome, found[bad].stage, found[bad].code)
    assert ended == (Outcome.FAILED, kind.stage, kind.code)
    assert str(tmp_path) not in str(found[bad].text)
    assert Counter(one.outcome for one in found.values()) == {"ok": len(good), "failed": 1}
    again, after = run(tmp_path, config, tasks)
    assert (again, {**after, bad: found[bad]}) == ([bad], found)


class Interrupting(NullProgress):
    def report_progress(
        self, part: str, done: int, stats: object, total: int | None = None
    ) -> None:
        super().report_progress(part, done, stats, total)
        if done == 2:
            raise KeyboardInterrupt


def test_a_stopped_run_loses_nothing_and_asks_nothing_twice(kind: Kind, tmp_path: Path) -> None:
    config, (*tasks, _) = kind.config(0), tasks_in(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, config, tasks, Interrupting())
    before = {name: one for (name, _), one in Journal(tmp_path, config.name).entries.items()}
    assert len(before) >= 2
    asked, found = run(tmp_path, config, tasks)
    assert sorted(asked) == sorted({task.sample_id for task in tasks} - before.keys())
    assert {name: found[name] for name in before} == before
    assert run(tmp_path, config, tasks) == ([], found)
