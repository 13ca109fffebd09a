"""Networks are loaded once, whoever asks, and go with what holds them."""

from __future__ import annotations

import gc
import weakref
from threading import Barrier, Thread

import pytest

from echo_hf.errors import MissingExtraError, ScoreError
from echo_hf.metrics.image_features import LoadedOnce


class Network:
    """Stands for weights."""


def test_the_same_network_is_given_to_all() -> None:
    """By its key, loaded when it is first asked for."""
    networks: LoadedOnce[Network] = LoadedOnce()
    loads: list[str] = []

    def load(name: str) -> Network:
        loads.append(name)
        return Network()

    given = [networks.get(name, lambda name=name: load(name)) for name in "aabab"]  # type: ignore[misc]
    assert loads == ["a", "b"]
    assert len({id(one) for one in given}) == 2
    assert given[0] is given[3]


def test_threads_wait_for_the_one_that_loads() -> None:
    """Eight at once, one load."""
    networks: LoadedOnce[Network] = LoadedOnce()
    start, loads, found = Barrier(8, timeout=30), [], []

    def load() -> Network:
        loads.append(1)
        return Network()

    def work() -> None:
        start.wait()
        found.append(networks.get("vit", load))

    threads = [Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1
    assert len(set(map(id, found))) == 1
    assert len(found) == 8


def test_what_cannot_be_loaded_is_tried_once() -> None:
    """Each that asks is told the same, with its cause; nothing of the attempt is held."""
    networks: LoadedOnce[Network] = LoadedOnce()
    attempts: list[weakref.ref[Network]] = []

    def fail() -> Network:
        half = Network()
        attempts.append(weakref.ref(half))
        try:
            raise ConnectionError("no route")
        except ConnectionError as error:
            raise ScoreError("not a model 'a'") from error

    for _ in range(3):
        with pytest.raises(ScoreError, match=r"^not a model 'a'$") as caught:
            networks.get("a", fail)
        assert isinstance(caught.value.__cause__, ConnectionError)
    del caught
    gc.collect()
    assert len(attempts) == 1
    assert attempts[0]() is None


def test_a_missing_package_may_be_installed_meanwhile() -> None:
    """It is looked for each time."""
    networks: LoadedOnce[Network] = LoadedOnce()

    def missing() -> Network:
        raise MissingExtraError("structure_distance", "metrics")

    with pytest.raises(MissingExtraError):
        networks.get("a", missing)
    assert isinstance(networks.get("a", Network), Network)


def test_few_are_kept_and_all_go_at_last() -> None:
    """Those that were asked for last."""
    networks: LoadedOnce[Network] = LoadedOnce()
    held = {name: weakref.ref(networks.get(name, Network)) for name in "ab"}
    networks.get("a", Network)
    held["c"] = weakref.ref(networks.get("c", Network))
    gc.collect()
    assert {name for name, one in held.items() if one() is not None} == {"a", "c"}
    del networks
    gc.collect()
    assert {one() for one in held.values()} == {None}
