"""Worker processes: what they are given, what they give, how they fail, and what a config says."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import ImageRef
from echo_hf.errors import GenerationError
from echo_hf.systems.base import GenerationResult, Task, TransientError
from echo_hf.systems.command import CommandSystem, WorkerProcess, hide_secrets
from echo_hf.tables import Outcome
from tests._infra.test_worker_pool import ended
from tests.errors_for_tests import said_by
from tests.images_for_tests import encoded, noise
from tests.package.blocks import blocks
from tests.stages_for_tests import ROOT

MISBEHAVING = Path(__file__).with_name("misbehaving.py")
LONG_S = 60.0
# Long enough for a busy machine to answer, short enough to wait for.
SHORT_S = 2.0


def config_of(
    *, timeout_s: float = LONG_S, script: Path = MISBEHAVING, seed: int = 7, **parameters: Any
) -> SystemConfig:
    return SystemConfig(
        name="lumen",
        adapter="command",
        developer="Northlight",
        status="current",
        seed=seed,
        limits={"timeout_s": timeout_s},
        parameters={"command": [sys.executable, "-S", str(script)], **parameters},
    )


def made(**options: Any) -> CommandSystem:
    return CommandSystem(config_of(**options))


def task_of(prompt: str, *inputs: Path, sample_id: str = "a1") -> Task:
    refs = tuple(ImageRef(hashlib.sha256(path.read_bytes()).hexdigest(), path) for path in inputs)
    return Task(sample_id, "0" * 64, "text_to_image", prompt, refs)


def color_of(prompt: str, *inputs: bytes, seed: int = 7) -> tuple[int, ...]:
    return tuple(hashlib.sha256(prompt.encode() + b"%d" % seed + b"".join(inputs)).digest()[:3])


def color(drawn: GenerationResult) -> Any:
    assert drawn.image is not None, drawn
    with Image.open(io.BytesIO(drawn.image)) as image:
        return image.convert("RGB").getpixel((0, 0))


def painter(drawn: GenerationResult) -> int:
    return int(str(drawn.text).removeprefix("by "))


def draws(system: CommandSystem) -> bool:
    return system.draw(task_of("kite")).outcome is Outcome.OK


def number_in(file: Path) -> int:
    until = time.monotonic() + LONG_S
    while not (file.exists() and file.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    return int(file.read_text())


# Workers that work.


def test_an_image_and_what_is_said_of_it_come_back() -> None:
    """Whatever libraries print; an answer that comes twice is that of its own task alone."""
    with made() as system:
        drawn = system.draw(task_of("a red kite"))
        loud, twice, last = (
            system.draw(task_of(one, sample_id=one)) for one in ("chatter", "twice", "kite")
        )
    assert (drawn.outcome, drawn.stage, drawn.seed) == (Outcome.OK, None, 7)
    said = {"name": "misbehaving", "version": "7", "determinism": "all of it"}
    assert drawn.details["worker"] == said
    assert system.determinism == "all of it"
    for one, prompt in ((drawn, "a red kite"), (loud, "chatter"), (twice, "twice"), (last, "kite")):
        assert color(one) == color_of(prompt)
    assert painter(drawn) == painter(last)


def test_inputs_arrive_in_order_as_copies(tmp_path: Path) -> None:
    png, jpeg = encoded(noise((8, 6)), "PNG"), encoded(noise((6, 8)), "JPEG")
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(png)
    two.write_bytes(jpeg)
    with made() as system:
        there = system.draw(task_of("echo", one, two))
        back = system.draw(task_of("echo", two, one))
        assert system.draw(task_of("scribble", one)).outcome is Outcome.OK
    assert color(there) == color_of("echo", png, jpeg)
    assert color(back) == color_of("echo", jpeg, png)
    paths = [Path(path) for path in there.details["worker_says"]["request"]["inputs"]]
    assert [path.suffix for path in paths] == [".png", ".jpg"]
    assert not paths[0].parent.exists()
    assert one.read_bytes() == png


def test_a_request_holds_what_the_protocol_says() -> None:
    prompt, size = 'echo "ein Bär"\u2028\n{"id": 1}', {"width": 64, "height": 48}
    given = {**config_of(parameters={"steps": 30}).model_dump(), "size": size}
    with CommandSystem(SystemConfig(**given)) as system:
        request = system.draw(task_of(prompt)).details["worker_says"]["request"]
    assert Path(request.pop("output")).name == "output.png"
    assert request == {
        "id": "a1",
        "prompt": prompt,
        "inputs": [],
        "seed": 7,
        "size": size,
        "parameters": {"steps": 30},
    }


def test_no_key_of_parent_reaches_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "SHOP_KEY", "PYTHONPATH"):
        monkeypatch.setenv(name, f"value of {name}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    given = {"environment": {"STEPS": "5"}, "pass_environment": ["SHOP_KEY"]}
    with made(folder=str(tmp_path), **given) as system:
        said = system.draw(task_of("environment")).details["worker_says"]
    found = said["environment"]
    assert not {"OPENAI_API_KEY", "HF_TOKEN", "PYTHONPATH"} & set(found)
    assert (found["STEPS"], found["CUDA_VISIBLE_DEVICES"]) == ("5", "1")
    # It is there, and hidden in the answer: what a worker says is kept.
    assert found["SHOP_KEY"] == "$SHOP_KEY"
    assert said["folder"] == str(tmp_path.resolve())


def test_outcomes_without_an_image_end_where_they_usually_do() -> None:
    stages = {
        *{("refused", "input"), ("no_image", "answer"), ("failed", "request")},
        *{("unsupported", "task"), ("retired", "preflight")},
    }
    with made() as system:
        for outcome, stage in stages:
            drawn = system.draw(task_of(f'say {{"outcome": "{outcome}", "code": "E7"}}'))
            assert (drawn.outcome, drawn.stage) == (outcome, stage)
            assert (drawn.code, drawn.image) == ("E7", None)
        drawn = system.draw(task_of('say {"outcome": "refused", "stage": "output"}'))
        assert drawn.stage == "output"


def test_more_inputs_than_the_worker_takes_are_unsupported(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(encoded(noise((8, 6)), "PNG"))
    task = task_of("kite", tmp_path / "one", tmp_path / "one")
    hello = {"HELLO_MORE": '{"most_inputs": 1}'}
    with made(environment=hello) as system:
        drawn = system.draw(task)
    assert drawn.outcome is Outcome.UNSUPPORTED
    assert drawn.text == "the task has 2 input images, and the worker takes at most 1"
    with made(most_inputs=2, environment=hello) as system:
        assert system.draw(task).outcome is Outcome.OK


def test_workers_share_the_tasks() -> None:
    prompts = [f"kite {number}" for number in range(12)]
    with made(workers=2) as system, ThreadPoolExecutor(4) as threads:
        assert system.concurrency == 2
        drawn = list(threads.map(system.draw, [task_of(one, sample_id=one) for one in prompts]))
    assert [color(one) for one in drawn] == [color_of(one) for one in prompts]
    assert len({painter(one) for one in drawn}) == 2


def test_leaving_ends_the_workers_and_entering_starts_others() -> None:
    system, painters = made(), list[int]()
    for _ in range(2):
        with system:
            painters.append(painter(system.draw(task_of("kite"))))
        assert ended(painters[-1])
    assert len(set(painters)) == 2
    with pytest.raises(GenerationError, match="have been ended"):
        system.draw(task_of("kite"))


def test_the_worker_of_the_documentation_works(tmp_path: Path) -> None:
    (script,) = blocks((ROOT / "docs/how-to/command.md").read_text("utf-8"), "python")
    (tmp_path / "worker.py").write_text(script.text)
    system = made(command=[sys.executable, "worker.py"], folder=str(tmp_path))
    assert system.preflight() is None
    with system:
        assert color(system.draw(task_of("kite"))) == (7, 0, 0)


# Workers that fail.


@pytest.mark.parametrize(
    ("prompt", "timeout_s", "code", "text"),
    [
        ("crash", LONG_S, "worker_ended", "it ended with status 3; its last words: out of paint"),
        ("hang", SHORT_S, "timeout", "it gave no answer in 2 s, without a word"),
        ("flood", LONG_S, "line_too_long", "without ending the line"),
        ("close", LONG_S, "worker_ended", "it ended its output"),
        ('say {"id": "b2"}', LONG_S, "wrong_id", "to another request"),
    ],
)
def test_a_lost_worker_is_replaced(prompt: str, timeout_s: float, code: str, text: str) -> None:
    with made(timeout_s=timeout_s) as system:
        assert draws(system)
        with pytest.raises(TransientError) as error:
            system.draw(task_of(prompt))
        assert draws(system)
    assert error.value.code == code
    assert text in error.value.text
    assert "\n" not in error.value.text


@pytest.mark.parametrize("key", ["sesame-4711", 'sesäme "4711"'])
def test_a_key_is_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAINT_KEY", key)
    given = {"pass_environment": ["PAINT_KEY"]}
    hello = {"HELLO_MORE": json.dumps({"name": f"by {key}", "version": f"1 {key}"})}
    with made(**given, environment=hello) as system:
        worker = system.draw(task_of("kite")).details["worker"]
        with pytest.raises(TransientError) as lost:
            system.draw(task_of("crash"))
    assert (worker["name"], worker["version"]) == ("by $PAINT_KEY", "1 $PAINT_KEY")
    assert lost.value.text.endswith("out of paint | key $PAINT_KEY")
    wrong = {"HELLO_MORE": json.dumps({"most_inputs": key})}
    system = made(**given, environment=wrong)
    with system, pytest.raises(GenerationError, match=r"most_inputs is '\$PAINT_KEY'"):
        system.draw(task_of("kite"))


def test_a_value_that_holds_another_is_hidden_whole() -> None:
    parent = {"A_KEY": "sesame", "B_TOKEN": "sesame-4711", "C_KEY": "1", "MODE": "quickly"}
    for names in (list(parent), list(parent)[::-1]):
        said = hide_secrets(b"1 sesame-4711 sesame quickly", names, parent)
        assert said == b"1 $B_TOKEN $A_KEY quickly"


@pytest.mark.parametrize(
    ("word", "timeout_s", "code"),
    [("child", SHORT_S, "timeout"), ("orphan", LONG_S, "worker_ended")],
)
def test_children_end_with_a_worker(word: str, timeout_s: float, code: str, tmp_path: Path) -> None:
    with made(timeout_s=timeout_s) as system:
        with pytest.raises(TransientError) as error:
            system.draw(task_of(f"{word} {tmp_path / 'number'}"))
        assert error.value.code == code
        assert ended(number_in(tmp_path / "number"))
        assert draws(system)


@pytest.mark.parametrize(
    ("after", "code"), [("time.sleep(600)", "timeout"), ("sys.exit()", "worker_ended")]
)
def test_a_child_that_leaves_the_group_holds_nothing_up(
    after: str, code: str, tmp_path: Path
) -> None:
    """It holds the pipes open; the request is longer than they are, and nobody reads it."""
    script = tmp_path / "worker.py"
    script.write_text(
        "import subprocess, sys, time\n"
        'print(\'{"echo_hf_worker": 1, "name": "x"}\', flush=True)\n'
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        f"print(child.pid, file=open({str(tmp_path / 'number')!r}, 'w'), flush=True)\n{after}\n"
    )
    more = {"parameters": {"words": "x" * 300_000}}
    given: Any = {"script": script, "timeout_s": SHORT_S, **more}
    with made(**given) as system, pytest.raises(TransientError) as one:
        system.draw(task_of("kite"))
    os.kill(number_in(tmp_path / "number"), signal.SIGKILL)
    assert one.value.code == code


def test_an_answer_that_does_not_fit_fails_the_task() -> None:
    cases: dict[str, dict[str, object]] = {
        "unknown key 'cost'; did you mean 'cost_usd'?": {"cost": 3},
        "cost_usd is -1": {"cost_usd": -1},
        "details is {'share': nan}": {"details": {"share": float("nan")}},
        "expected a JSON object": {"text": "\ud800"},
    }
    with made() as system:
        first = painter(system.draw(task_of("kite")))
        for text, more in cases.items():
            drawn = system.draw(task_of(f"say {json.dumps(more)}"))
            assert (drawn.outcome, drawn.stage, drawn.code) == ("failed", "answer", "bad_answer")
            assert text in str(drawn.text)
        assert painter(system.draw(task_of("kite"))) == first


def test_only_an_image_in_the_folder_is_taken() -> None:
    cases = {
        "empty": "no_picture_file",
        "text": "bad_picture",
        f"say {json.dumps({'output': __file__})}": "outside",
    }
    with made() as system:
        for prompt, code in cases.items():
            drawn = system.draw(task_of(prompt))
            assert (drawn.outcome, drawn.stage, drawn.code) == ("failed", "answer", code)
            assert drawn.image is None
        assert draws(system)


@pytest.mark.parametrize(
    ("script", "start_timeout_s", "text"),
    [
        ("import sys; sys.exit('no such model')", LONG_S, "status 1; its last words: no such"),
        ("import time; time.sleep(600)", 0.5, "no answer in 0.5 s"),
        ('print(\'{"echo_hf_worker": 2, "name": "x"}\')', LONG_S, "echo_hf_worker is 2"),
        ("print('{\"echo_hf_worker\": 1}')", LONG_S, "name is missing"),
        (None, LONG_S, "cannot start 'no-such-program'"),
    ],
)
def test_a_worker_that_cannot_start_stops_the_run(
    script: str | None, start_timeout_s: float, text: str, tmp_path: Path
) -> None:
    (tmp_path / "worker.py").write_text(script or "")
    command = {} if script is not None else {"command": ["no-such-program"]}
    system = made(script=tmp_path / "worker.py", start_timeout_s=start_timeout_s, **command)
    with system:
        assert text in said_by(GenerationError, system.draw, task_of("kite"))


def test_a_first_line_counts_that_comes_before_it_is_waited_for(tmp_path: Path) -> None:
    """On a busy machine, a quick worker is ready before it is asked."""
    script = (
        "import os, pathlib\n"
        "print('{\"echo_hf_worker\": 1}', flush=True)\n"
        "pathlib.Path('number').write_text(str(os.getpid()))\n"
    )
    worker = WorkerProcess([sys.executable, "-S", "-c", script], tmp_path, {}, bytes)
    number_in(tmp_path / "number")
    assert worker.ask(b"", LONG_S, "echo_hf_worker") == b'{"echo_hf_worker": 1}\n'
    worker.stop()


def crashes(system: CommandSystem, names: str) -> None:
    for name in names:
        with pytest.raises(TransientError):
            system.draw(task_of("crash", sample_id=name))


def test_restarts_are_bounded() -> None:
    with made(most_restarts=2) as system:
        crashes(system, "abab")
        assert draws(system)
        crashes(system, "cd")
        with pytest.raises(GenerationError, match="ended in 3 tasks without an answer between"):
            system.draw(task_of("crash", sample_id="e"))


def test_leaving_ends_tasks_that_are_drawn_or_wait(tmp_path: Path) -> None:
    system = made()
    with ThreadPoolExecutor(4) as threads:
        with system:
            busy = threads.submit(system.draw, task_of(f"child {tmp_path / 'number'}"))
            number = number_in(tmp_path / "number")
            waiting = [threads.submit(system.draw, task_of("hang")) for _ in range(3)]
        assert type(busy.exception(LONG_S)) is TransientError
        assert {type(one.exception(LONG_S)) for one in waiting} <= {GenerationError, TransientError}
    assert ended(number)


@pytest.mark.slow
def test_a_worker_whose_parent_was_killed_reads_the_end_of_its_input() -> None:
    code = (
        "import os, signal\n"
        "from tests.systems.test_command import made, painter, task_of\n"
        "system = made().__enter__()\n"
        "print(painter(system.draw(task_of('kite'))), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert ended(int(done.stdout))


# What a config says.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "worker.py").write_text("print('hello')")
    return tmp_path


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({}, None),
        ({"command": ["env/bin/python", "worker.py"]}, None),  # looked for from the folder on
        ({"folder": "nowhere"}, "no folder, as seen from 'nowhere'"),
        ({"command": ["no-such-program"]}, "no program 'no-such-program'"),
        ({"command": ["bin/python", "worker.py"]}, "no program 'bin/python'"),
        ({"command": [sys.executable, "other.py"]}, "no script 'other.py'"),
        ({"pass_environment": ["NOT_SET_ANYWHERE"]}, "no variable 'NOT_SET_ANYWHERE'"),
    ],
)
def test_preflight_says_what_is_missing(parameters: Any, text: str | None, folder: Path) -> None:
    (folder / "env/bin").mkdir(parents=True)
    (folder / "env/bin/python").symlink_to(sys.executable)
    given = {"command": [sys.executable, "worker.py"], "folder": str(folder), **parameters}
    if text is None:
        assert made(**given).preflight() is None
        return
    assert text in said_by(GenerationError, made(**given).preflight)


def test_the_signature_is_the_same_on_another_machine(tmp_path: Path) -> None:
    signatures = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "worker.py").write_text("print('hello')")
        weights = f"/data/{name}/lumen.ckpt/"
        python = f"/{name}/bin/{'python' if name == 'one' else 'python3.12'}"
        system = made(
            command=[python, "worker.py", "--fast", "--weights", weights, f"--vae={weights}"],
            folder=str(tmp_path / name),
            environment={"WEIGHTS": weights},
            parameters={"adapters": [{"file": weights}]},
        )
        signatures.append(system.signature())
    assert signatures[0] == signatures[1]
    assert str(tmp_path) not in repr(signatures)
    assert "/data" not in repr(signatures)
    assert repr(signatures[0]).count("lumen.ckpt") == 4


def test_the_signature_is_what_decides_an_image(folder: Path) -> None:
    given = {"command": [sys.executable, "worker.py"], "folder": str(folder)}
    plain = made(**given).signature()
    decide: list[dict[str, Any]] = [
        {"command": [sys.executable, "worker.py", "--slow"]},
        {"parameters": {"steps": 31}},
        {"environment": {"STEPS": "5"}},
        {"seed": 8},
    ]
    others = [made(**{**given, **change}).signature() for change in decide]
    whole = config_of(**given).model_dump()
    others += [
        CommandSystem(SystemConfig(**{**whole, **change})).signature()
        for change in ({"model": "me/other"}, {"size": {"width": 64, "height": 64}})
    ]
    assert plain not in others
    ignored = {"workers": 2, "start_timeout_s": 5, "most_restarts": 1, "most_inputs": 3}
    more = {"pass_environment": ["HTTPS_PROXY"], "environment": {}, "timeout_s": 5}
    assert made(**given, **ignored, **more).signature() == plain
    (folder / "worker.py").write_text("print('hallo')")
    assert made(**given).signature() != plain


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"command": "python worker.py"}, "command is 'python worker.py'"),
        ({"command": ["python", "w.py\n"]}, "without control characters"),
        ({"command": ["python", "http://me:sesame@host"]}, "no secret in a command"),
        ({"command": ["python", "worker:bagle"]}, "'worker:bagle'; did you mean 'worker:bagel'"),
        ({"environment": {"GIT_TOKEN": "sesame"}}, "'GIT_TOKEN' is one"),
    ],
)
def test_bad_parameters_are_one_line(parameters: dict[str, Any], text: str) -> None:
    given = config_of().model_copy(update={"parameters": {"command": ["python"], **parameters}})
    assert text in said_by(GenerationError, CommandSystem, given)
