"""The store of answers: what is kept, under which key, and how long it lasts."""

from __future__ import annotations

import os
import pickle
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from echo_hf.engines.base import Completion, ImageRef, Message, Packing, Request, Text, Usage
from echo_hf.pipeline.answer_store import RequestRecord, Store, compute_request_keys
from tests.stages_for_tests import Guess, Shade, request

SIGNATURE = {"kind": "scripted", "model": "one"}
RED = request("red", sources=("https://example.org/1", "https://example.org/2"))
ANSWER = Completion('{"name": "röd"}', None, "stop", Usage(10, 3, 2), 0.25)
FAILURE = Completion(None, "no power", "error", Usage(5, 0, 0), 0.5)


def _key(asked: Request, **changed: str) -> bytes:
    [key] = compute_request_keys({**SIGNATURE, **changed}, [asked])
    return key


def _put(store: Store, asked: Request, completion: Completion = ANSWER) -> bytes:
    key = _key(asked)
    store.add_sources((address, key) for address in asked.sources)
    store.put(key, asked, completion, SIGNATURE)
    return key


def _bytes_of(store: Store) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(store.path.parent.iterdir()))


@pytest.mark.parametrize(
    "completion",
    [
        ANSWER,
        FAILURE,
        Completion("I will not.", None, "refusal"),
        Completion("{", None, "length"),
        # Half of a surrogate pair, as an answer that was cut inside a character.
        Completion('{"name": "\ud83d'),
        Completion(None, "odd \udc00 message", "error"),
    ],
)
def test_a_completion_comes_back_whole_and_only_an_answer_counts(
    store: Store, completion: Completion
) -> None:
    """Of what is none, the words are why it is none, and no more than 300 characters of them."""
    key, other = _put(store, RED, completion), _key(request("blue"))
    why = replace(completion, text=None, error=completion.error or completion.text)
    assert store.get([other, key]) == {key: completion if completion.is_answer else why}
    assert len(store) == int(completion.is_answer)
    _put(store, request("blue"), Completion("x" * 400, None, "length"))
    assert store.get([other])[other].error == "x" * 300


@pytest.mark.parametrize(
    ("order", "kept"),
    [
        ((FAILURE, ANSWER), ANSWER),
        ((ANSWER, FAILURE), ANSWER),
        ((FAILURE, replace(FAILURE, error="no water")), replace(FAILURE, error="no water")),
        ((ANSWER, replace(ANSWER, text="{}")), replace(ANSWER, text="{}")),
    ],
)
def test_an_answer_wins_over_a_failure_and_the_last_of_a_kind_counts(
    store: Store, order: tuple[Completion, ...], kept: Completion
) -> None:
    key = {_put(store, RED, completion) for completion in order}.pop()
    found = store.get([key])[key]
    assert (found.text, found.error) == (kept.text, kept.error)


def test_a_record_adds_up_all_calls_of_a_request(store: Store) -> None:
    _put(store, RED, FAILURE)
    key = _put(store, RED, FAILURE)
    assert store.records([key]) == {key: RequestRecord(0, False, Usage(10, 0, 0), 1.0)}
    store.put(key, RED, Completion("Hm."), SIGNATURE, readable=False, tries=1)
    assert store.records([key]) == {key: RequestRecord(1, False, Usage(10, 0, 0), 1.0)}
    assert not store.records([key])[key].is_settled
    store.put(key, RED, ANSWER, SIGNATURE, readable=True, tries=2)
    assert store.records([key, _key(ASKED)]) == {key: RequestRecord(2, True, Usage(20, 3, 2), 1.25)}
    free = _put(store, request("blue"), Completion("x"))
    assert store.records([free])[free].cost_usd is None


def test_the_answers_of_one_call_are_kept_together_or_not_at_all(store: Store) -> None:
    blue = request("blue")
    with pytest.raises(KeyboardInterrupt), store.write_together(SIGNATURE):  # noqa: PT012
        store.put(_key(RED), RED, ANSWER, SIGNATURE)
        raise KeyboardInterrupt
    assert store.get([_key(RED)]) == {}
    with store.write_together(SIGNATURE):
        store.put(_key(RED), RED, ANSWER, SIGNATURE)
        store.put(_key(blue), blue, FAILURE, SIGNATURE)
    assert store.get([_key(RED), _key(blue)]) == {_key(RED): ANSWER, _key(blue): FAILURE}


def test_thousands_of_keys_are_read_at_once(store: Store) -> None:
    keys = [_put(store, request(str(number))) for number in range(1200)]
    assert set(store.get(keys)) == set(store.records(keys)) == set(keys)
    assert len(set(keys)) == 1200
    assert store.get([]) == {}


# What a request is, piece by piece; each other request must have another key.
IMAGES = ("aa" * 32, "bb" * 32)
ASKED = request("red", images=IMAGES)
PACKING = Packing(4, Message("system", (Text("Name all shades."),)), Shade, ("line",))
OTHERS = {
    "asked with others": replace(ASKED, packing=PACKING),
    "with more others": replace(ASKED, packing=replace(PACKING, size=5)),
    "with others in other words": replace(
        ASKED, packing=replace(PACKING, instructions=ASKED.messages[0])
    ),
    "with others in another shape": replace(ASKED, packing=replace(PACKING, answer=Guess.answer)),
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
    "form": replace(ASKED, answer=None, regex="a"),
    "another form": replace(ASKED, answer=None, regex="b"),
    "repetition": replace(ASKED, repeat=1),
    "max_tokens": request("red", images=IMAGES, max_tokens=17),
    "a text that looks like an image": replace(
        ASKED, messages=(ASKED.messages[0], Message("user", (*map(Text, IMAGES), Text("red"))))
    ),
}


def test_whatever_decides_an_answer_is_in_its_key() -> None:
    assert len({_key(one) for one in (ASKED, *OTHERS.values())}) == 1 + len(OTHERS)


def test_a_key_depends_on_the_signature_and_not_on_what_the_model_does_not_see() -> None:
    assert len({_key(ASKED), _key(ASKED, model="two"), _key(ASKED, revision="abc")}) == 3
    turned = dict(reversed(SIGNATURE.items()))
    assert compute_request_keys(turned, [ASKED]) == compute_request_keys(SIGNATURE, [ASKED])
    unseen = {"inputs": {"a": 1}, "sources": ("https://example.org/9",), "row": "r", "part": 3}
    assert _key(replace(ASKED, task="other", **unseen)) == _key(ASKED)
    # Computed once, in another process: a key holds for every run and machine.
    assert _key(request("red")).hex() == (
        "6eb1aef0422727f9a3c9529d88b9d6499e159b01eadf4fb38f0e94f11f65cbfe"
    )


def _user(*parts: Text | ImageRef) -> Request:
    return replace(ASKED, messages=(Message("user", parts),))


def test_where_a_part_ends_is_in_the_key() -> None:
    """What one part says in another's frame, or two parts say as one, is another conversation."""
    a, b = Text("a"), Text("b")
    asked = [_user(a, b), _user(Text("ab")), _user(Text("atb")), _user(a), _user(a, Text(""))]
    asked += [_user(Text("1:a"), b), _user(Text("1:at1:b")), _user(ImageRef("a"), b), _user()]
    asked.append(replace(ASKED, messages=(Message("user", (a,)), Message("user", (b,)))))
    assert len(set(map(_key, asked))) == len(asked)


def test_a_forgotten_post_takes_its_answers_with_it(store: Store) -> None:
    both = _put(store, RED)
    failed = _put(store, request("pink", sources=("https://example.org/2",)), FAILURE)
    other = _put(store, request("blue", sources=("https://example.org/20",)))
    later = _put(store, request("grey"))
    store.add_sources(iter([("https://example.org/3", later), ("https://例え.org/'\"", later)]))
    store.add_sources([("https://example.org/3", later)])
    assert (
        store.forget(["https://example.org/_", "%", "https://example.org/7", "https://例え"]) == 0
    )
    assert store.forget(iter(["https://example.org/2", "https://example.org/7"])) == 1
    assert set(store.get([both, failed, other, later])) == {other, later}
    assert store.forget(["https://例え.org/'\"", "https://example.org/2"]) == 1
    assert store.forget(["https://example.org/20"]) == 1
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("select count(*) from sources").fetchone() == (0,)


def test_a_forgotten_answer_is_gone_from_the_files(store: Store) -> None:
    _put(store, RED, Completion("a very secret colour " * 400))
    _put(store, request("pink", sources=RED.sources), Completion(None, "a very secret error"))
    _put(store, request("blue"), Completion("a plain colour"))
    assert b"very secret" in _bytes_of(store)
    store.forget(RED.sources)
    assert b"very secret" not in _bytes_of(store)
    assert b"a plain colour" in _bytes_of(store)


def test_a_store_takes_from_another_what_is_about_some_posts_and_better_than_its_own(
    store: Store, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("there") / "answers.sqlite"
    every = [request(name, sources=(f"https://example.org/{name}",)) for name in "abcde"]
    same, unread, lacking, failed, foreign = every
    with closing(Store(place)) as there:
        for asked in (same, unread, lacking, foreign):
            _put(there, asked, replace(ANSWER, text="theirs"))
        _put(there, failed, FAILURE)
    before = {file: file.read_bytes() for file in there.path.parent.iterdir()}
    _put(store, same)
    store.put(_key(unread), unread, replace(ANSWER, text="unread"), SIGNATURE, readable=False)
    posts = {f"https://example.org/{name}" for name in "abcd"}
    store.take(there.path, posts)
    once = _bytes_of(store)
    store.take(there.path, posts)

    found = store.get([_key(asked) for asked in every])
    assert [found[_key(one)].text for one in every[:4]] == [ANSWER.text, "theirs", "theirs", None]
    assert found[_key(failed)] == FAILURE
    assert _key(foreign) not in found
    assert store.forget(["https://example.org/c"]) == 1  # the source was taken with the answer
    assert _bytes_of(store) != once
    assert before == {file: file.read_bytes() for file in there.path.parent.iterdir()}


def _changed(store: Store, key: bytes, text: str) -> None:
    """Changes the bytes of an answer, as a disk or a copy may; `text` is SQL."""
    store.close()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute(f"update answers set text = {text} where key = ?", (key,))  # noqa: S608


def _as_before(store: Store) -> None:
    """Makes the file what it was before there were digests."""
    store.close()
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("alter table answers drop column digest")


DAMAGES = {
    "another letter": "replace(text, 'd', 'e')",
    "cut": "substr(text, 1, 5)",
    "empty": "''",
    "no UTF-8": "cast(x'7bff' || text as text)",
    "no UTF-8 in a blob": "x'7bff'",
    "half a surrogate pair more": "x'7beda0bd'",
}


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_an_answer_whose_text_was_damaged_is_none_and_is_asked_for_again(
    store: Store, change: str
) -> None:
    key, other = _put(store, RED), _put(store, request("blue"))
    _changed(store, key, change)
    found = store.get([key, other])
    assert (found[key].text, found[key].error, found[other]) == (None, "damaged_answer", ANSWER)
    records = store.records([key, other])
    assert records[key] == RequestRecord(0, False, ANSWER.usage, ANSWER.cost_usd, damaged=True)
    assert not records[key].is_settled
    assert records[other] == RequestRecord(1, True, ANSWER.usage, ANSWER.cost_usd)
    _put(store, RED, FAILURE)
    assert store.get([key])[key].error == FAILURE.error
    _put(store, RED)
    assert store.get([key]) == {key: replace(ANSWER, usage=Usage(20, 6, 4), cost_usd=0.5)}
    assert store.records([key])[key].is_settled


def test_a_store_of_before_there_were_digests_gets_them(store: Store) -> None:
    half = Completion('{"name": "\ud83d')
    key, other = _put(store, RED), _put(store, request("blue"), half)
    _as_before(store)
    assert store.get([key, other]) == {key: ANSWER, other: half}
    for one in (key, other):
        _changed(store, one, "x'7b7d'")
        assert store.get([one])[one].error == "damaged_answer"
    assert len(store) == 2


def test_a_store_of_before_that_cannot_be_written_is_read(store: Store) -> None:
    key = _put(store, RED)
    _as_before(store)
    store.path.chmod(0o444)
    if os.access(store.path, os.W_OK):
        pytest.skip("this user may write every file")
    assert store.get([key]) == {key: ANSWER}
    assert store.records([key])[key].is_settled


@pytest.mark.parametrize("is_before", [False, True])
def test_a_store_takes_no_damaged_answer_and_gives_its_own_for_a_whole_one(
    store: Store, tmp_path_factory: pytest.TempPathFactory, is_before: bool
) -> None:
    place = tmp_path_factory.mktemp("there") / "answers.sqlite"
    theirs, ours = RED, request("blue", sources=RED.sources)
    there = Store(place)
    for asked in (theirs, ours):
        _put(there, asked)
    _put(store, ours)
    _changed(store, _key(ours), "'{}'")
    if is_before:
        _as_before(there)
    else:
        _changed(there, _key(theirs), "'{}'")
        there.close()
    assert store.take(place, set(RED.sources)) == int(not is_before)
    assert store.get([_key(ours)]) == {_key(ours): ANSWER}
    assert store.get([_key(theirs)]) == ({_key(theirs): ANSWER} if is_before else {})
    _changed(store, _key(ours), "'{}'")
    assert store.get([_key(ours)])[_key(ours)].error == "damaged_answer"


def test_a_pickled_store_opens_the_same_file(store: Store) -> None:
    key = _put(store, RED)
    data = pickle.dumps(store)
    assert len(data) < 200 + len(str(store.path))
    with closing(pickle.loads(data)) as copy:  # noqa: S301 - our own bytes
        assert copy.get([key]) == {key: ANSWER}
        _put(copy, request("blue"))
    assert len(store) == 2
