"""Names of samples, their digests, and the posts that travel with them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.samples.sample import ID_ALPHABET, context_of, sample_digest, sample_id, sample_ids


def test_the_name_is_the_digest_of_the_sources_in_base_57() -> None:
    """The letters are the lowest 22 base-57 digits of the sources' sha256, lowest first."""
    name = sample_id("https://example.org/1", 12, 0)
    value = sum(ID_ALPHABET.index(letter) * 57**place for place, letter in enumerate(name))
    text = json.dumps(["https://example.org/1", 12, 0])
    digest = int(hashlib.sha256(text.encode()).hexdigest(), 16)

    assert len(name) == 22
    assert value == digest % 57**22


def test_the_first_prompt_of_a_post_has_the_name_of_the_post() -> None:
    text = "zero\none one one"
    names = sample_ids("u", text, [-1, 9, 5, 0, -1])

    assert names == [
        sample_id("u", -1, 0),
        sample_id("u", 5, 1),
        sample_id("u", 5, 0),
        sample_id("u"),
        sample_id("u", -1, 1),
    ]


def test_the_digest_covers_prompt_and_inputs_in_order() -> None:
    told = (("p", ["a", "b"]), ("p", ["b", "a"]), ("p", ["a"]), ("p", []), ("q", ["a", "b"]))
    assert len({sample_digest(prompt, inputs) for prompt, inputs in told}) == 5
    assert sample_digest("p", ()) == hashlib.sha256(b'["p", []]').hexdigest()


FIELDS = {"url", "parent", "author", "text", "missing", "pictures"}


def thread(parents: list[int]) -> list[dict[str, Any]]:
    shown = {"sha256": None, "url": None, "alt_text": None}
    plain = {"depth": 0, "author": "ana", "timestamp": None, "missing": None}
    return [
        {**plain, "url": f"u{n}", "parent": parent, "text": f"t{n}"}
        | {"pictures": [shown] * (n % 3) or None}
        for n, parent in enumerate(parents)
    ]


PARENTS = st.integers(1, 12).flatmap(
    lambda count: st.tuples(st.just(-1), *(st.integers(0, n - 1) for n in range(1, count)))
)


@given(PARENTS, st.data())
def test_a_context_is_closed_upwards(parents: tuple[int, ...], data: st.DataObject) -> None:
    numbers = st.lists(st.sampled_from(range(len(parents))), max_size=4)
    own, feedback = data.draw(numbers), data.draw(numbers)
    expected = set()
    for number in [*own, *feedback]:  # brute force: walk up from each
        chain = [number]
        while parents[chain[-1]] >= 0:
            chain.append(parents[chain[-1]])
        expected |= set(chain)
    made = context_of(thread(list(parents)), own, feedback)

    assert [post["url"] for post in made] == [f"u{number}" for number in sorted(expected)]
    for post in made:
        above = parents[int(post["url"][1:])]
        assert post["parent"] == -1 if above < 0 else made[post["parent"]]["url"] == f"u{above}"
        assert set(post) == FIELDS
