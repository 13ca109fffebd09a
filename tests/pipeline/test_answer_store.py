"""The store of answers: what is kept, under which key, and how long it lasts."""

from __future__ import annotations

import os
import pickle
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from echo_hf.engines.base import Completion, ImageRef, Message, Request, Text, Usage
from echo_hf.pipeline.answer_store import Record, Store, request_keys
from tests.stages_for_tests import ROOT, Shade, request

SIGNATURE = {"kind": "scripted", "model": "one"}
RED = request("red", sources=("https://example.org/1", "https://example.org/2"))
ANSWER = Completion('{"name": "röd"}', None, "stop", Usage(10, 3, 2), 0.25)
FAILURE = Completion(None, "no power", "error", Usage(5, 0, 0), 0.5)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "answers.sqlite")
    yield made
    made.close()


def _key(asked: Request, **changed: str) -> bytes:
    [key] = request_keys({**SIGNATURE, **changed}, [asked])
    return key


def _put(store: Store, asked: Request, completion: Completion = ANSWER) -> bytes:
    key = _key(asked)
    store.put(key, asked, completion, SIGNATURE)
    return key


def _bytes_of(store: Store) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(store.path.parent.iterdir()))


def test_an_answer_comes_back_whole(store: Store) -> None:
    key = _put(store, RED)
    assert store.get([_key(request("blue")), key]) == {key: ANSWER}
    assert store.answered([_key(request("blue")), key]) == {key}
    assert len(store) == 1


def test_half_a_character_is_kept(store: Store) -> None:
    cut = Completion('{"name": "\ud83d'), Completion(None, "odd \udc00 message", "error")
    keys = [_put(store, request(str(at)), one) for at, one in enumerate(cut)]
    assert [store.get([key])[key] for key in keys] == list(cut)


@pytest.mark.parametrize(
    "completion",
    [FAILURE, Completion("I will not.", None, "refusal"), Completion("{", None, "length")],
)
def test_a_failure_is_remembered_but_is_no_answer(store: Store, completion: Completion) -> None:
    key = _put(store, RED, completion)
    assert store.get([key]) == {key: replace(completion, text=None)}
    assert store.answered([key]) == set()
    assert len(store) == 0


@pytest.mark.parametrize("order", [(FAILURE, ANSWER), (ANSWER, FAILURE)])
def test_an_answer_wins_over_a_failure(store: Store, order: tuple[Completion, ...]) -> None:
    keys = {_put(store, RED, completion) for completion in order}
    assert store.get(list(keys)) == {_key(RED): ANSWER}


@pytest.mark.parametrize(
    "last", [replace(FAILURE, error="no water"), replace(ANSWER, text='{"name": "blå"}')]
)
def test_of_two_failures_or_answers_the_last_counts(store: Store, last: Completion) -> None:
    _put(store, RED, FAILURE if last.error else ANSWER)
    key = _put(store, RED, last)
    kept = store.get([key])[key]
    assert (kept.text, kept.error) == (last.text, last.error)


def test_a_record_adds_up_all_calls_of_a_request(store: Store) -> None:
    _put(store, RED, FAILURE)
    key = _put(store, RED, FAILURE)
    assert store.records([key]) == {key: Record(0, False, Usage(10, 0, 0), 1.0)}
    store.put(key, RED, Completion("Hm."), SIGNATURE, readable=False, tries=1)
    assert store.records([key]) == {key: Record(1, False, Usage(10, 0, 0), 1.0)}
    store.put(key, RED, ANSWER, SIGNATURE, readable=True, tries=2)
    assert store.records([key, _key(ASKED)]) == {key: Record(2, True, Usage(20, 3, 2), 1.25)}
    free = _put(store, request("blue"), Completion("x"))
    assert store.records([free])[free].cost_usd is None


@pytest.mark.parametrize(
    ("readable", "tries", "settled"),
    [(True, 1, True), (False, 1, False), (False, 2, True), (False, 0, False)],
)
def test_a_request_is_settled_when_readable_or_tried_twice(
    readable: bool, tries: int, settled: bool
) -> None:
    assert Record(tries, readable).settled is settled


def test_thousands_of_keys_are_read_at_once(store: Store) -> None:
    keys = [_put(store, request(str(number))) for number in range(1200)]
    assert set(store.get(keys)) == store.answered(keys) == set(keys)
    assert len(set(keys)) == 1200
    assert store.get([]) == {}


# What a request is, piece by piece; each other request must have another key.
IMAGES = ("aa" * 32, "bb" * 32)
ASKED = request("red", images=IMAGES)
OTHERS = {
    "message text": request("red.", images=IMAGES),
    "instructions": request("red", "Name a shade.", images=IMAGES),
    "role": replace(ASKED, messages=(ASKED.messages[0], replace(ASKED.messages[1], role="system"))),
    "image digest": request("red", images=("aa" * 32, "bc" * 32)),
    "order of images": request("red", images=IMAGES[::-1]),
    "number of images": request("red", images=IMAGES[:1]),
    "order of messages": replace(ASKED, messages=ASKED.messages[::-1]),
    "number of messages": replace(ASKED, messages=(*ASKED.messages, ASKED.messages[1])),
    "schema": request("red", images=IMAGES, answer=Shade),
    "no schema": replace(ASKED, answer=None),
    "max_tokens": request("red", images=IMAGES, max_tokens=17),
    "a text that looks like an image": replace(
        ASKED,
        messages=(
            ASKED.messages[0],
            Message("user", (*map(Text, IMAGES), Text("red"))),
        ),
    ),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_whatever_decides_an_answer_is_in_its_key(other: Request) -> None:
    assert _key(other) != _key(ASKED)


def test_the_engines_signature_is_in_the_key_in_any_order() -> None:
    assert len({_key(ASKED), _key(ASKED, model="two"), _key(ASKED, revision="abc")}) == 3
    turned = dict(reversed(SIGNATURE.items()))
    assert request_keys(turned, [ASKED]) == request_keys(SIGNATURE, [ASKED])


def test_what_the_model_does_not_see_is_not_in_the_key() -> None:
    other = replace(ASKED, task="other", inputs={"a": 1}, sources=("https://example.org/9",))
    assert _key(other) == _key(ASKED)


def test_keys_are_the_same_in_every_process() -> None:
    code = (
        "from tests.stages_for_tests import *;"
        "from echo_hf.pipeline.answer_store import request_keys;"
        f"print(request_keys({SIGNATURE!r}, [request('red', images={IMAGES!r})])[0].hex())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == _key(ASKED).hex()
    assert len(_key(ASKED)) == 32


PIECES = st.lists(st.text("ait0123:", max_size=4), min_size=1, max_size=4)
SHAPES = st.lists(
    st.tuples(st.sampled_from(["system", "user"]), st.lists(st.tuples(st.booleans(), PIECES))),
    max_size=3,
)


def _of_shape(shape: list[tuple[str, list[tuple[bool, list[str]]]]]) -> Request:
    messages = tuple(
        Message(
            "system" if role == "system" else "user",
            tuple(
                ImageRef("".join(pieces)) if image else Text("".join(pieces))
                for image, pieces in parts
            ),
        )
        for role, parts in shape
    )
    return replace(ASKED, messages=messages)


@given(SHAPES, SHAPES)
def test_different_conversations_have_different_keys(
    one: list[tuple[str, list[tuple[bool, list[str]]]]],
    other: list[tuple[str, list[tuple[bool, list[str]]]]],
) -> None:
    ours, theirs = _of_shape(one), _of_shape(other)
    assert (_key(ours) == _key(theirs)) == (ours.messages == theirs.messages)


@example(["a", "b"], ["atb"])
@example(["a", "b"], ["ab"])
@example(["", "a"], ["a", ""])
@example(["a"], ["a", ""])
@example(["1:a", "b"], ["1:at1:b"])
@given(PIECES, PIECES)
def test_cutting_a_text_elsewhere_makes_another_question(one: list[str], other: list[str]) -> None:
    keys = [
        _key(replace(ASKED, messages=(Message("user", tuple(map(Text, pieces))),)))
        for pieces in (one, other)
    ]
    assert (keys[0] == keys[1]) == (one == other)


def test_a_forgotten_post_takes_its_answers_with_it(store: Store) -> None:
    both = _put(store, RED)
    failed = _put(store, request("pink", sources=("https://example.org/2",)), FAILURE)
    other = _put(store, request("blue", sources=("https://example.org/20",)))
    none = _put(store, request("grey"))
    assert store.forget(iter(["https://example.org/2", "https://example.org/7"])) == 1
    assert set(store.get([both, failed, other, none])) == {other, none}
    assert store.forget(["https://example.org/2"]) == 0
    assert store.forget([]) == 0


def test_later_sources_count_like_the_first(store: Store) -> None:
    answer, failure = _put(store, RED), _put(store, request("pink"), FAILURE)
    store.add_sources([("https://example.org/3", answer), ("https://example.org/4", failure)])
    store.add_sources(iter([("https://example.org/3", answer)]))
    _put(store, replace(RED, sources=("https://example.org/5",)))
    assert store.forget(["https://example.org/4"]) == 0
    assert set(store.get([answer, failure])) == {answer}
    assert store.forget(["https://example.org/1", "https://example.org/5"]) == 1
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("select count(*) from sources").fetchone() == (0,)


def test_a_source_is_matched_as_a_whole(store: Store) -> None:
    for number, source in enumerate(("a'b", 'a"b', "a%", "å", "https://例え.org/1")):
        _put(store, request(str(number), sources=(source,)))
    assert store.forget(["a_b", "%", "a", "https://例え.org/"]) == 0
    assert store.forget(['a"b', "å", "a'b", "https://例え.org/1"]) == 4


def test_a_forgotten_answer_is_gone_from_the_files(store: Store) -> None:
    _put(store, RED, Completion("a very secret colour " * 400))
    _put(store, request("pink", sources=RED.sources), Completion(None, "a very secret error"))
    _put(store, request("blue"), Completion("a plain colour"))
    assert b"very secret" in _bytes_of(store)
    store.forget(RED.sources)
    assert b"very secret" not in _bytes_of(store)
    assert b"a plain colour" in _bytes_of(store)


WRITER = """
import sys
from echo_hf.engines.base import Completion
from echo_hf.pipeline.answer_store import request_keys
from echo_hf.pipeline.answer_store import Store
from tests.stages_for_tests import request
store = Store(sys.argv[1])
for number in range(int(sys.argv[3])):
    asked = request(f"{sys.argv[2]} {number}")
    [key] = request_keys({"model": "one"}, [asked])
    store.put(key, asked, Completion(str(number) * 500), {"model": "one"})
    print(key.hex(), flush=True)
"""


def _writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_a_killed_process_loses_no_answer_that_put_returned_for(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    with _writer(path, "red", 10**6) as writer:
        assert writer.stdout is not None
        printed = [writer.stdout.readline() for _ in range(300)]
        os.kill(writer.pid, signal.SIGKILL)
        printed += writer.stdout.read().splitlines()
    assert writer.returncode == -signal.SIGKILL
    keys = [bytes.fromhex(line) for line in printed if len(line.strip()) == 64]
    with closing(Store(path)) as store:
        known = store.get(keys)
    assert len(keys) >= 300
    assert [known[key].text for key in keys] == [str(at) * 500 for at in range(len(keys))]


def test_a_pickled_store_opens_the_same_file(store: Store) -> None:
    key = _put(store, RED)
    data = pickle.dumps(store)
    assert len(data) < 200 + len(str(store.path))
    with closing(pickle.loads(data)) as copy:  # noqa: S301 - our own bytes
        assert copy.get([key]) == {key: ANSWER}
        _put(copy, request("blue"))
    assert len(store) == 2
