"""Workers on a Ray cluster do what processes of one machine do, and their nodes may be lost."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from echo_hf._infra.ray_pool import RayNodes, connect_cluster
from echo_hf._infra.worker_pool import WorkerPool
from echo_hf.errors import GenerationError, RunError
from tests._infra import test_worker_pool as laws
from tests._infra.painters import windows, work
from tests._infra.test_worker_pool import Pools, begun, ended, results

pytest.importorskip("ray", reason="needs the extra `ray`")
pytestmark = [
    pytest.mark.extras,
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore"),
]
# What of the pool holds wherever its workers are.
LAWS = (
    laws.test_a_killed_worker_loses_nothing_and_repeats_nothing_that_was_done,
    laws.test_a_window_goes_on_while_items_wait_and_batches_stay_together,
    laws.test_an_error_of_one_item_is_its_own_and_one_of_a_worker_at_work_a_loss,
    laws.test_an_item_that_ends_two_workers_fails_alone_and_is_not_tried_again,
    laws.test_closing_ends_workers_at_work_and_what_they_have_started,
    laws.test_the_last_workers_end_is_everybodys,
    laws.test_what_stops_a_worker_before_its_first_result_is_told_as_it_is,
)
globals().update({law.__name__: law for law in LAWS})


@pytest.fixture
def nodes(ray_cluster: Any, tmp_path: Path) -> Iterator[RayNodes]:
    with connect_cluster(ray_cluster.address):
        made = RayNodes(gpus=0, cpus=0.3, micro_batch=4, folder=tmp_path)
        yield made
        made.close()


@pytest.fixture
def pool(nodes: RayNodes, tmp_path: Path) -> Iterator[Pools]:
    made = list[WorkerPool[str, Any]]()

    def make(devices: list[None], service: Any = None, **more: Any) -> WorkerPool[str, Any]:
        service, places = service or partial(work, tmp_path), [nodes] * len(devices)
        made.append(WorkerPool("the painters", service, places, GenerationError, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_workers_without_room_wait_and_the_others_do_all(pool: Pools) -> None:
    """Room is for nine of 0.3 CPUs on three nodes of one."""
    painters = pool([None] * 40)
    assert [said for said, *_ in results(painters.submit("a", "b"))] == ["A", "B"]
    assert painters.size == 40
    assert 1 <= painters.alive <= 9


def test_files_that_options_name_are_those_of_the_run(
    pool: Pools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results(pool([None], partial(work, Path())).submit("a"))
    assert begun(tmp_path) == ["a"]


@pytest.mark.parametrize("shared", [True, False])
def test_a_node_that_is_sent_files_keeps_none_of_them(
    ray_cluster: Any, tmp_path: Path, shared: bool
) -> None:
    """Neither at the end, nor when an actor is killed, as all are with the run."""
    (file := tmp_path / "a.png").write_text("a")
    with connect_cluster(ray_cluster.address):
        nodes = RayNodes(gpus=0, cpus=0.3, micro_batch=4, folder=tmp_path, shared=shared)
        assert list(tmp_path.iterdir()) == [file]  # nobody has to look
        pool = WorkerPool[Path, Any]("the painters", windows, [nodes], GenerationError)
        ((first, _, worker),) = results(pool.submit(file))
        assert (first == file) == shared
        assert first.read_text() == "a"
        actor = re.search(r"PPid:\s(\d+)", Path(f"/proc/{worker}/status").read_text())
        assert actor
        os.kill(int(actor[1]), signal.SIGKILL)
        assert ended(worker)
        ((second, _, _),) = results(pool.submit(file))
        assert (second == first) == shared
        pool.close()
        assert [one.exists() for one in (first, second)] == [shared, shared]


def test_a_cluster_of_another_version_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(*_: Any, **__: Any) -> None:
        raise RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.40.0\n")

    monkeypatch.setattr("ray.init", other)
    with (
        pytest.raises(RunError, match=r"^runner.address is 'auto', .* Ray: 2.40.0\): install the"),
        connect_cluster("auto"),
    ):
        pass


def test_an_address_without_a_cluster_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable of Ray is for those who name none."""
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:10")
    with (
        pytest.raises(RunError, match=r"^runner.address is '127.0.0.1:9', and no cluster can"),
        connect_cluster("127.0.0.1:9"),
    ):
        pass


def test_the_environment_speaks_where_the_config_says_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    for given in ("head", "ray://head:10001", ":6379", "head:x"):
        monkeypatch.setenv("RAY_ADDRESS", given)
        with pytest.raises(RunError, match=f"^RAY_ADDRESS is '{given}': expected .*HOST:PORT"):
            connect_cluster("auto").__enter__()
