"""Worker processes that fail: what becomes of the task, of the next one, and of the process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from echo_hf.errors import GenerationError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import TransientError
from echo_hf.systems.command import CommandSystem
from tests.stages_for_tests import ROOT
from tests.systems.command.commands_for_tests import (
    LONG_S,
    SHORT_S,
    command_config,
    command_system,
    ends,
    task_of,
)


def draws(system: CommandSystem) -> bool:
    """Whether the system still draws."""
    return system.draw(task_of("kite")).outcome is Outcome.OK


@pytest.mark.parametrize(
    ("prompt", "timeout_s", "code", "text"),
    [
        ("crash", LONG_S, "worker_ended", "it ended with status 3; its last words: out of paint"),
        ("hang", SHORT_S, "timeout", "it gave no answer in 2 s, without a word"),
        ("flood", LONG_S, "line_too_long", "without ending the line"),
        ("close", LONG_S, "worker_ended", "it ended its output"),
    ],
)
def test_a_lost_worker_is_replaced(prompt: str, timeout_s: float, code: str, text: str) -> None:
    """The attempt may pass, says what the worker said, and the next one has a new worker."""
    with command_system(timeout_s=timeout_s) as system:
        assert draws(system)
        with pytest.raises(TransientError) as error:
            system.draw(task_of(prompt))
        assert draws(system)
    assert error.value.code == code
    assert text in error.value.text
    assert "\n" not in error.value.text


def test_a_key_in_last_words_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the variable stands in place of a value that was passed on."""
    monkeypatch.setenv("PAINT_KEY", "sesame-4711")
    system = command_system(pass_environment=["PAINT_KEY"])
    with system, pytest.raises(TransientError) as error:
        system.draw(task_of("crash"))
    assert error.value.text.endswith("out of paint | key $PAINT_KEY")


@pytest.mark.parametrize("key", ["sesame-4711", 'sesäme "4711"'])
def test_a_key_in_the_first_line_is_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what the worker is called in provenance, nor what a line that does not fit says."""
    monkeypatch.setenv("PAINT_KEY", key)
    given = {"pass_environment": ["PAINT_KEY"]}
    hello = {"HELLO_MORE": json.dumps({"name": f"by {key}", "version": f"1 {key}"})}
    with command_system(**given, environment=hello) as system:
        worker = system.draw(task_of("kite")).details["worker"]
    assert (worker["name"], worker["version"]) == ("by $PAINT_KEY", "1 $PAINT_KEY")
    wrong = {"HELLO_MORE": json.dumps({"most_inputs": key})}
    with (
        command_system(**given, environment=wrong) as system,
        pytest.raises(GenerationError, match=r"most_inputs is '\$PAINT_KEY'"),
    ):
        system.draw(task_of("kite"))


@pytest.mark.parametrize(
    ("word", "timeout_s", "code"),
    [("child", SHORT_S, "timeout"), ("orphan", LONG_S, "worker_ended")],
)
def test_children_end_with_their_worker(
    word: str, timeout_s: float, code: str, tmp_path: Path
) -> None:
    """Killed for hanging, or by somebody while the child holds its output: no GPU stays taken."""
    with command_system(timeout_s=timeout_s) as system:
        with pytest.raises(TransientError) as error:
            system.draw(task_of(f"{word} {tmp_path / 'number'}"))
        assert error.value.code == code
        assert ends(int((tmp_path / "number").read_text()))
        assert draws(system)


def test_a_worker_that_dies_between_tasks_is_replaced() -> None:
    """The task that finds it dead gets another attempt."""
    with command_system() as system:
        number = int(str(system.draw(task_of("kite")).text).removeprefix("by "))
        os.kill(number, signal.SIGKILL)
        assert ends(number)
        with pytest.raises(TransientError, match="ended by signal 9"):
            draws(system)
        assert draws(system)


def test_an_answer_to_another_request_is_not_taken() -> None:
    """Who mixes up requests is replaced: all further images would be of other samples."""
    with command_system() as system:
        with pytest.raises(TransientError, match="to another request") as error:
            system.draw(task_of('say {"id": "b2"}'))
        assert draws(system)
    assert error.value.code == "wrong_id"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"cost": 3}, "unknown key 'cost'; did you mean 'cost_usd'?"),
        ({"outcome": "fine"}, "outcome is 'fine'"),
        ({"cost_usd": -1}, "cost_usd is -1"),
        ({"seed": "7"}, "seed is '7'"),
        ({"stage": "input"}, "stage is 'input': expected an outcome other than 'ok'"),
        ({"details": {"share": float("nan")}}, "details is {'share': nan}"),
        ({"text": "\ud800"}, "expected a JSON object"),
    ],
)
def test_an_answer_that_does_not_fit_fails_the_task(more: dict[str, object], text: str) -> None:
    """Nothing of it is taken; the worker stays, as its answers are in step."""
    with command_system() as system:
        first = system.draw(task_of("kite")).text
        drawn = system.draw(task_of(f"say {json.dumps(more)}"))
        assert system.draw(task_of("kite")).text == first
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
    assert drawn.code == "bad_answer"
    assert text in str(drawn.text)


@pytest.mark.parametrize(
    ("prompt", "code"),
    [
        ("empty", "no_picture_file"),
        ('say {"output": "other.png"}', "no_picture_file"),
        ('say {"output": "../other.png"}', "outside"),
        (f"say {json.dumps({'output': __file__})}", "outside"),
        ('say {"output": "."}', "no_regular_file"),
    ],
)
def test_only_an_image_in_the_folder_is_taken(prompt: str, code: str) -> None:
    """Whatever path the worker names."""
    with command_system() as system:
        drawn = system.draw(task_of(prompt))
        assert draws(system)
    assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
    assert drawn.code == code
    assert drawn.image is None


def test_a_file_that_is_no_image_fails_the_task(tmp_path: Path) -> None:
    """It is decoded before it is kept."""
    script = tmp_path / "worker.py"
    script.write_text(
        "import json, sys\n"
        "print(json.dumps({'echo_hf_worker': 1, 'name': 'text'}), flush=True)\n"
        "for line in sys.stdin:\n"
        "    request = json.loads(line)\n"
        "    open(request['output'], 'w').write('<html>')\n"
        "    print(json.dumps({'id': request['id']}), flush=True)\n"
    )
    with command_system(script=script) as system:
        drawn = system.draw(task_of("kite"))
    assert (drawn.outcome, drawn.code) == (Outcome.FAILED, "bad_picture")


@pytest.mark.parametrize(
    ("script", "start_timeout_s", "text"),
    [
        ("import sys; sys.exit('no such model')", LONG_S, "status 1; its last words: no such"),
        ("import time; time.sleep(600)", 1.0, "no answer in 1 s"),
        ('print(\'{"echo_hf_worker": 2, "name": "x"}\')', LONG_S, "echo_hf_worker is 2"),
        ("print('{\"echo_hf_worker\": 1}')", LONG_S, "name is missing"),
    ],
)
def test_a_worker_that_cannot_start_stops_the_run(
    script: str, start_timeout_s: float, text: str, tmp_path: Path
) -> None:
    """In one line, with what it said; another attempt would go the same way."""
    (tmp_path / "worker.py").write_text(script)
    system = command_system(script=tmp_path / "worker.py", start_timeout_s=start_timeout_s)
    with system, pytest.raises(GenerationError) as error:
        system.draw(task_of("kite"))
    assert text in str(error.value)
    assert "\n" not in str(error.value)


def test_a_program_that_is_not_there_stops_the_run() -> None:
    """Found out by the first task where no preflight was made."""
    parameters = {"command": ["no-such-program"]}
    config = command_config().model_copy(update={"parameters": parameters})
    with CommandSystem(config) as system, pytest.raises(GenerationError, match="cannot start"):
        system.draw(task_of("kite"))


def crashes(system: CommandSystem, name: str) -> None:
    """A task of a sample, of which a worker dies."""
    system.draw(replace(task_of("crash"), sample_id=name))


def test_restarts_are_bounded() -> None:
    """So many tasks in a row as the config says; an answer between makes them count anew."""
    with command_system(most_restarts=2) as system:
        for name in "abab":
            with pytest.raises(TransientError):
                crashes(system, name)
        assert draws(system)
        for name in "cd":
            with pytest.raises(TransientError):
                crashes(system, name)
        with pytest.raises(GenerationError, match="ended in 3 tasks without an answer between"):
            crashes(system, "e")


def test_a_task_that_kills_its_workers_does_not_end_the_run() -> None:
    """However often it is tried."""
    with command_system(most_restarts=1) as system:
        for _ in range(4):
            with pytest.raises(TransientError):
                crashes(system, "a")
        assert draws(system)


def test_leaving_ends_a_worker_that_is_at_a_task(tmp_path: Path) -> None:
    """Its task may be tried again; the worker and its child are gone, without the task's wait."""
    raised: list[BaseException] = []
    system = command_system()

    def draw() -> None:
        try:
            system.draw(task_of(f"child {tmp_path / 'number'}"))
        except BaseException as error:
            raised.append(error)

    with system:
        thread = Thread(target=draw)
        thread.start()
        while not (tmp_path / "number").exists() or not (tmp_path / "number").read_text():
            assert thread.is_alive()
            time.sleep(0.02)
    thread.join(LONG_S)
    assert [type(error) for error in raised] == [TransientError]
    assert ends(int((tmp_path / "number").read_text()))


def test_leaving_ends_tasks_that_wait_for_a_worker(tmp_path: Path) -> None:
    """More tasks than workers: none starts another worker, and none waits for ever."""
    system = command_system(timeout_s=LONG_S)
    with ThreadPoolExecutor(4) as threads:
        with system:
            busy = threads.submit(system.draw, task_of(f"child {tmp_path / 'number'}"))
            while not (tmp_path / "number").exists():
                time.sleep(0.02)
            waiting = [threads.submit(system.draw, task_of("hang")) for _ in range(3)]
        assert type(busy.exception(LONG_S)) is TransientError
        assert {type(one.exception(LONG_S)) for one in waiting} <= {GenerationError, TransientError}


def test_a_worker_whose_parent_was_killed_reads_the_end_of_its_input() -> None:
    """No time to clean up, and still nothing stays."""
    code = (
        "import os, signal\n"
        "from tests.systems.command.commands_for_tests import command_system, task_of\n"
        "system = command_system().__enter__()\n"
        "print(system.draw(task_of('kite')).text.removeprefix('by '), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert ends(int(done.stdout))
