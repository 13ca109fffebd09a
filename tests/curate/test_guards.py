"""The looks that a guard takes at a sample."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.curate.guards import LONGEST_TEXTS, GuardInput, looks_at, pieces
from tests.samples_for_tests import Row, digest, post, sample, samples

A, B, C, D = (digest(name) for name in "abcd")


def with_images(inputs: str = "", outputs: str = "", screenshot: str | None = None) -> Row:
    context = [post(0, -1, "prompt"), post(1, 0, "so good")]
    return sample(
        context,
        [0],
        [1],
        input_images=[digest(name) for name in inputs],
        output_images=[digest(name) for name in outputs],
        screenshot=screenshot and digest(screenshot),
    )


WORDS = ("a fox in the snow", "so good")


def test_words_alone() -> None:
    assert looks_at(with_images(), 5) == [GuardInput((), WORDS)]


def test_each_image_alone_and_all_together() -> None:
    row = with_images("a", "bca", "d")

    assert looks_at(row, 5) == [
        *(GuardInput((one,)) for one in (A, B, C, D)),
        GuardInput((A, B, C, D), WORDS),
    ]


def test_many_images_take_several_looks() -> None:
    row = with_images("a", "bcd")

    assert looks_at(row, 3)[4:] == [GuardInput((A, B, C), WORDS), GuardInput((D,), WORDS)]
    assert looks_at(row, 1)[4:] == [GuardInput((one,), WORDS) for one in (A, B, C, D)]


def test_long_words_take_several_looks() -> None:
    row = {**with_images("", "ab"), "prompt": "x" * (LONGEST_TEXTS + 7)}

    assert looks_at(row, 1) == [
        GuardInput((A,)),
        GuardInput((B,)),
        GuardInput((A,), ("x" * LONGEST_TEXTS,)),
        GuardInput((B,), ("x" * LONGEST_TEXTS,)),
        GuardInput((), ("x" * 7, "so good")),
    ]


@given(samples(), st.integers(1, 4))
def test_everything_is_looked_at(row: Row, most: int) -> None:
    """Each image alone and once beside words; every word; never too much at a time."""
    looks = looks_at(row, most)
    images = {*row["input_images"], *row["output_images"]}
    alone = [look.images for look in looks if not look.texts]
    beside = [look for look in looks if look.texts]
    first = beside[0]

    assert Counter(alone) == Counter((one,) for one in images)
    assert Counter(one for look in beside for one in look.images) == Counter(images)
    assert all(len(look.images) <= most for look in beside)
    assert all(look.texts == first.texts for look in beside if look.images)
    apart = [first, *(look for look in beside[1:] if not look.images)]
    said = [row["prompt"], *(one["feedback"] for one in row["community_feedback"])]
    assert "".join(text for look in apart for text in look.texts) == "".join(said)
    assert all(sum(map(len, look.texts)) <= LONGEST_TEXTS for look in looks)


TEXTS = st.lists(st.text(alphabet="ab \n\u3000画", max_size=30), max_size=5)


@given(TEXTS, st.integers(1, 12))
def test_no_character_is_lost_and_none_is_said_twice(texts: list[str], longest: int) -> None:
    made = pieces(texts, longest)

    assert "".join("".join(some) for some in made) == "".join(texts)
    assert all(sum(map(len, some)) <= longest for some in made)
    assert all(made) is bool(texts)


@given(TEXTS, st.integers(1, 12))
def test_no_piece_is_begun_without_need(texts: list[str], longest: int) -> None:
    for before, after in pairwise(pieces(texts, longest)):
        assert sum(map(len, before)) + len(after[0]) > longest


def test_a_text_is_cut_between_words() -> None:
    """By hand: after the last space that there is room for; in a word that is longer than that."""
    assert pieces(["one two three"], 8) == [("one two ",), ("three",)]
    assert pieces(["one two three"], 7) == [("one ",), ("two ",), ("three",)]
    assert pieces(["abcdefgh i"], 4) == [("abcd",), ("efgh",), (" i",)]
    assert pieces(["雨の日の猫"], 2) == [("雨の",), ("日の",), ("猫",)]


def test_texts_share_a_piece_while_there_is_room() -> None:
    assert pieces(["abc", "", "de", "f"], 5) == [("abc", "", "de"), ("f",)]
    assert pieces([], 5) == [()]
    assert pieces([""], 5) == [("",)]
