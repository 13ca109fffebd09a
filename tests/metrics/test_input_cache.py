"""What is kept of inputs: within the bound, first come first kept, and counted honestly."""

from __future__ import annotations

import gc
import pickle
import tracemalloc
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.errors import ScoreError
from echo_hf.metrics import FaceCache, SimilarityCache
from echo_hf.metrics.face_reader import Faces
from echo_hf.metrics.image_features import InputCache

KEYS = st.tuples(st.sampled_from(["vit", "other"]), st.sampled_from([b"a", b"b", b"c", b"d"]))
Cache = InputCache[Any, Any]


def _faces(count: int, failed: str = "") -> Faces:
    boxes, embeddings = (np.zeros((count, wide), np.float32) for wide in (4, 512))
    return Faces(boxes, embeddings, failed)


def _similarity(tokens: int) -> Any:
    return np.zeros((tokens, tokens), np.float32)


CACHES: dict[str, tuple[Any, Any]] = {
    "similarities": (SimilarityCache, _similarity),
    "faces": (FaceCache, _faces),
}


def _filled(cache: Cache, keys: list[tuple[str, bytes]], value: Any) -> int:
    for key in keys:
        cache.keep(key, value)
    return cache.kept_bytes


@pytest.mark.parametrize("kind", CACHES)
@given(st.lists(KEYS, max_size=20), st.integers(0, 7), st.integers(-1, 1))
def test_what_is_kept_is_the_first_that_fits(
    kind: str, keys: list[tuple[str, bytes]], rooms: int, more: int
) -> None:
    """By key, each once, as many as the bound holds to the byte."""
    make, value_of = CACHES[kind]
    value = value_of(4)
    each = _filled(make(), [("vit", b"a")], value)
    most = max(0, rooms * each + more)
    cache = make(most_bytes=most)
    expected = list(dict.fromkeys(keys))[: most // each]
    assert _filled(cache, keys, value) == each * len(expected) <= most
    assert len(cache) == len(expected)
    for key in keys:
        assert (cache.find(key) is not None) == (key in expected)


@pytest.mark.parametrize("count", [683, 1366, 3000])
@pytest.mark.parametrize(
    ("make", "value"),
    [
        (SimilarityCache, _similarity(4)),
        (SimilarityCache, _similarity(40)),
        (FaceCache, _faces(0)),
        (FaceCache, _faces(2)),
        (FaceCache, _faces(0, "Fehler: zu dünn " * 12)),
    ],
)
def test_what_is_counted_is_what_memory_holds(make: Any, value: Any, count: int) -> None:
    """Never less, and no more than a kilobyte an input too much, as Python itself counts it."""
    gc.collect()
    tracemalloc.start()
    try:
        cache, network = make(), "n" * 600
        for number in range(count):
            own = value.copy() if isinstance(value, np.ndarray) else _told_anew(value)
            cache.keep((network, number.to_bytes(32)), own)
            del own
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(cache) == count
    assert held <= cache.kept_bytes <= held + 1024 * count


def _told_anew(faces: Faces) -> Faces:
    """With a text of its own, as each failure has."""
    return Faces(faces.boxes, faces.embeddings, "".join(list(faces.failed)))


def test_what_is_kept_holds_on_to_nothing_else() -> None:
    """A part of a batch is copied: it neither keeps the batch nor changes with it."""
    similarities, faces = SimilarityCache(), FaceCache()
    batch, boxes = np.zeros((8, 4, 4), np.float32), np.zeros((9, 4), np.float32)
    similarities.keep(("vit", b"a"), batch[3])
    faces.keep(("pack", b"a"), Faces(boxes[:1], boxes[2:3]))
    batch += 1
    boxes += 1
    kept, found = similarities.find(("vit", b"a")), faces.find(("pack", b"a"))
    assert kept is not None
    assert found is not None
    for array in (kept, found.boxes, found.embeddings):
        assert array.base is None
        assert array.sum() == 0


def test_threads_keep_within_the_bound() -> None:
    """What four of them count together is what is there."""
    each = _filled(SimilarityCache(), [("vit", b"a")], _similarity(4))
    cache, start = SimilarityCache(most_bytes=150 * each), Barrier(4, timeout=30)

    def work(first: int) -> None:
        start.wait()
        for number in range(first, first + 100):
            cache.keep(("vit", b"%d" % number), _similarity(4))

    threads = [Thread(target=work, args=(50 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 150
    assert cache.kept_bytes == 150 * each


@pytest.mark.parametrize("kind", CACHES)
def test_a_copy_for_another_process_is_empty(kind: str) -> None:
    """With the same bound, and ready to be filled."""
    make, value_of = CACHES[kind]
    each = _filled(make(), [("vit", b"a")], value_of(4))
    cache = make(most_bytes=2 * each)
    _filled(cache, [("vit", b"a")], value_of(4))
    copy = pickle.loads(pickle.dumps(cache))  # noqa: S301 - what was just written
    assert (type(copy), len(copy), copy.kept_bytes) == (make, 0, 0)
    assert _filled(copy, [("vit", b"%d" % at) for at in range(3)], value_of(4)) == 2 * each


@pytest.mark.parametrize("make", [SimilarityCache, FaceCache])
@pytest.mark.parametrize("most", [-1, 1.5, "1 GB", None])
def test_a_bound_is_a_number_of_bytes(make: Any, most: object) -> None:
    """Anything else is refused in one line."""
    with pytest.raises(ScoreError, match=r"^most_bytes is .*: expected a whole number from 0$"):
        make(most_bytes=most)
