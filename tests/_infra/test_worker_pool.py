"""Items go to worker processes, one a device: none is lost with a process, none is done twice."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from echo_hf._infra import worker_pool
from echo_hf._infra.worker_pool import (
    VISIBLE_DEVICES,
    LostItemError,
    ProcessWorker,
    WorkerPool,
    assign_gpus,
    make_processes,
)
from echo_hf.errors import EngineError, GenerationError
from tests._infra.painters import refuses, windows, work

LONGEST_S = 60


Pools = Callable[..., WorkerPool[str, Any]]


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pools]:
    made = list[WorkerPool[str, Any]]()

    def make(devices: list[str | None], service: Any = None, **more: Any) -> WorkerPool[str, Any]:
        service = service or partial(work, tmp_path)
        made.append(
            WorkerPool("the painters", service, make_processes(devices), GenerationError, **more)
        )
        return made[-1]

    yield make
    for one in made:
        one.close()


def results(futures: list[Future[Any]]) -> list[Any]:
    return [future.result(LONGEST_S) for future in futures]


def both_there(pool: WorkerPool[str, Any]) -> WorkerPool[str, Any]:
    until = time.monotonic() + LONGEST_S
    while pool.alive < 2 and time.monotonic() < until:
        time.sleep(0.01)
    return pool


def begun(folder: Path) -> list[str]:
    notes = (one for one in folder.iterdir() if one.name.isdigit())
    return sorted(line for one in notes for line in one.read_text().splitlines())


def ended(number: int) -> bool:
    try:
        held = os.pidfd_open(number)
    except ProcessLookupError:
        return True
    ready, _, _ = select.select([held], [], [], LONGEST_S)
    os.close(held)
    return bool(ready)


def test_each_item_comes_back_under_its_own_future_from_a_worker_with_its_device(
    pool: Pools, tmp_path: Path
) -> None:
    painters = pool(["3", "5"])
    items = [f"sleep {number / 1000}" for number in range(40)]
    found = results([painters.submit(item)[0] for item in items])
    assert [said for said, _, _ in found] == [item.upper() for item in items]
    assert len({number for _, _, number in found}) == len({seen for _, seen, _ in found}) == 2
    assert {seen for _, seen, _ in found} == {"3", "5"}
    assert begun(tmp_path) == sorted(items)


def test_a_killed_worker_loses_nothing_and_repeats_nothing_that_was_done(
    pool: Pools, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    painters = both_there(pool([None, None]))
    items = [f"sleep 0.0{number}" for number in range(9)]
    given = [*items[:4], "once", *items[4:]]
    found = results([painters.submit(item)[0] for item in given])
    assert [said for said, _, _ in found] == list(map(str.upper, given))
    assert begun(tmp_path) == sorted([*items, "once", "once"])
    (notice,) = caplog.messages
    assert notice.startswith("the painters: worker process ")
    assert notice.endswith(" of 2 was killed by signal 9; 1 go on with what it was at")


def test_an_item_that_ends_two_workers_fails_alone_and_is_not_tried_again(pool: Pools) -> None:
    """Even where it was among others both times, and is handed over anew."""
    painters = pool([None] * 3, depth=4)
    batches = [painters.submit("a", "die", "b"), painters.submit("c", "d", "e")]
    with pytest.raises(LostItemError, match="2 worker processes ended while they were at it"):
        batches[0][1].result(LONGEST_S)
    rest = [one for batch in batches for one in batch if one is not batches[0][1]]
    assert [said for said, _, _ in results(rest)] == ["A", "B", "C", "D", "E"]
    with pytest.raises(LostItemError):
        painters.submit("die")[0].result(LONGEST_S)
    assert results(painters.submit("f"))[0][0] == "F"


def test_an_item_that_ends_the_last_two_workers_fails_and_the_others_are_left_to_do(
    pool: Pools,
) -> None:
    """Else the same command would end at it for ever."""
    painters = pool([None, None])
    lethal, *others = [painters.submit(item)[0] for item in ("die", "sleep 2", "a", "b")]
    with pytest.raises(LostItemError):
        lethal.result(LONGEST_S)
    for other in others[1:]:
        with pytest.raises(GenerationError, match="no other is left"):
            other.result(LONGEST_S)


def test_the_last_workers_end_is_everybodys(pool: Pools) -> None:
    painters = both_there(pool([None, None]))
    futures = [painters.submit(item)[0] for item in ("die 1", "die 2", "sleep 9", "sleep 8")]
    for future in futures:
        with pytest.raises(GenerationError, match="signal 9, and no other is left: the same comm"):
            future.result(LONGEST_S)
    with pytest.raises(GenerationError, match="no other is left"):
        painters.submit("a")


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (EngineError("no room for it"), EngineError, "no room for it"),
        (ZeroDivisionError("of\nnothing"), GenerationError, "painters: ZeroDivisionError: of not"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_stops_a_worker_before_its_first_result_is_told_as_it_is(
    pool: Pools, error: Exception, kind: type[Exception], said: str
) -> None:
    painters = pool([None, None], partial(refuses, error))
    with pytest.raises(kind, match=said):
        painters.submit("a")[0].result(LONGEST_S)


def test_an_error_of_one_item_is_its_own_and_one_of_a_worker_at_work_a_loss(pool: Pools) -> None:
    painters = pool([None, None])
    with pytest.raises(GenerationError, match="not this one"):
        painters.submit("refuse not this one")[0].result(LONGEST_S)
    assert results([painters.submit(item)[0] for item in ("a", "b")])
    with pytest.raises(LostItemError):
        painters.submit("stop lost its core")[0].result(LONGEST_S)
    with pytest.raises(GenerationError, match="stopped: lost its core, and no other is left"):
        painters.submit("a")


def test_a_window_goes_on_while_items_wait_and_batches_stay_together(pool: Pools) -> None:
    painters = pool([None, None], windows, depth=6)
    batches = [painters.submit(*(f"{at}{one}" for one in "abc")) for at in range(8)]
    found = [results(batch) for batch in batches]
    assert [[item for item, _, _ in batch] for batch in found] == [
        [f"{at}{one}" for one in "abc"] for at in range(8)
    ]
    assert all(len({number for _, _, number in batch}) == 1 for batch in found)
    assert max(many for batch in found for _, many, _ in batch) == 6


def test_a_worker_is_at_most_so_many_results_ahead_of_what_was_taken(tmp_path: Path) -> None:
    """The next item is begun, and its result waits to be sent."""
    worker = ProcessWorker(None, "a painter", pickle.dumps(partial(work, tmp_path)), ahead=3)
    worker.send([(number, pickle.dumps(f"item {number}")) for number in range(20)])
    heard = 0
    for taken in (3, 5):
        while heard < taken:
            heard += len(worker.read_messages(20))
        assert worker.read_messages(20) == []
        assert len(begun(tmp_path)) == taken + 1
        worker.allow_results(2)
    worker.kill()
    assert worker.wait_for_end() == "was killed by signal 9"


def child_of(folder: Path) -> int:
    while not (folder / "child").exists() or not (folder / "child").read_text():
        time.sleep(0.05)
    return int((folder / "child").read_text())


def test_what_a_killed_worker_has_started_ends_with_it(pool: Pools, tmp_path: Path) -> None:
    painters = pool([None])
    (busy,) = painters.submit("child")
    child = child_of(tmp_path)
    multiprocessing.active_children()[0].kill()
    with pytest.raises(GenerationError, match="no other is left"):
        busy.result(LONGEST_S)
    assert ended(child)


def test_closing_ends_workers_at_work_and_what_they_have_started(
    pool: Pools, tmp_path: Path
) -> None:
    painters = pool([None, None])
    (busy,), (idle,) = painters.submit("child"), painters.submit("a")
    _, _, number = idle.result(LONGEST_S)
    child = child_of(tmp_path)
    began = time.monotonic()
    painters.close()
    assert time.monotonic() - began < worker_pool.GRACE_SECONDS / 2
    with pytest.raises(GenerationError, match="its worker processes have been ended"):
        busy.result(LONGEST_S)
    assert ended(number)
    assert ended(child)
    with pytest.raises(GenerationError, match="have been ended"):
        painters.submit("a")


RUN = """
import sys, time
from contextlib import suppress
from functools import partial
from pathlib import Path
from echo_hf._infra.worker_pool import WorkerPool, make_processes
from echo_hf.errors import EngineError
from tests._infra.painters import work

if __name__ == "__main__":
    task = partial(work, Path(sys.argv[1]))
    pool = WorkerPool("x", task, make_processes([None, None]), EngineError)
    print(pool.submit("a")[0].result()[2], flush=True)
    {then}
"""


FAILS = """with suppress(Exception):
        places = make_processes([None, lambda: 0])
        WorkerPool("y", partial(work, Path(sys.argv[1])), places, EngineError)"""


@pytest.mark.parametrize(
    ("then", "is_killed"), [("pool.submit('child'); time.sleep(600)", True), (FAILS, False)]
)
def test_workers_end_with_a_run_that_is_killed_or_forgets_to_close(
    then: str, is_killed: bool, tmp_path: Path
) -> None:
    """So do those of a pool of which only the first could be started."""
    (tmp_path / "run.py").write_text(RUN.format(then=then))
    command = [sys.executable, str(tmp_path / "run.py"), str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        number = int(run.stdout.readline())
        child = child_of(tmp_path) if "child" in then else number
        if is_killed:
            run.kill()
        try:
            assert run.wait(LONGEST_S) == (-signal.SIGKILL if is_killed else 0)
        finally:
            run.kill()
    assert ended(number)
    assert ended(child)


@pytest.mark.parametrize(
    ("devices", "gpus", "each", "seen"),
    [
        (2, ["4", "GPU-5a", "6"], 1, ["4", "GPU-5a"]),
        ((1, 0), ["4", "5"], 1, ["5", "4"]),
        ("all", ["0", "1", "2", "3"], 2, ["0,1", "2,3"]),
        (3, [], 1, [None] * 3),
        (4, [], 2, [None] * 2),
    ],
)
def test_devices_are_shared_out(devices: Any, gpus: list[str], each: int, seen: list[Any]) -> None:
    assert assign_gpus(devices, gpus, each) == seen


@pytest.mark.parametrize(
    ("devices", "gpus", "each"),
    [("all", 0, 1), (2, 1, 1), ((0, 3), 2, 1), ((0,), 0, 1), (3, 3, 2), (3, 0, 2)],
)
def test_devices_that_are_not_there_are_refused(devices: Any, gpus: int, each: int) -> None:
    shown = re.escape(str(list(devices) if isinstance(devices, tuple) else repr(devices)))
    said = f"^{shown}, and this machine shows {gpus or 'no'} GPUs: expected all, at most as many"
    with pytest.raises(ValueError, match=said):
        assign_gpus(devices, [str(number) for number in range(gpus)], each)


def test_a_run_sees_no_more_gpus_than_it_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VISIBLE_DEVICES, "-1")
    assert worker_pool.visible_gpus() == []
