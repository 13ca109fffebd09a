"""The posts that travel with a sample: all it needs, in order, and no more."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.samples.sample import SAMPLES_IN_CONTEXT, context_of
from echo_hf.tables import SAMPLES, THREADS

FIELDS = {"url", "parent", "author", "text", "missing", "pictures"}


def thread(parents: list[int]) -> list[dict[str, Any]]:
    """Posts as `threads` holds them."""
    return [
        {
            "url": f"u{number}",
            "parent": parent,
            "depth": 0,
            "author": "ana",
            "text": f"t{number}",
            "timestamp": None,
            "missing": None,
            "pictures": [{"sha256": None, "url": None, "alt_text": None}] * (number % 3) or None,
        }
        for number, parent in enumerate(parents)
    ]


PARENTS = st.integers(1, 12).flatmap(
    lambda count: st.tuples(st.just(-1), *(st.integers(0, n - 1) for n in range(1, count)))
)


@given(PARENTS, st.data())
def test_a_context_is_closed_upwards(parents: tuple[int, ...], data: st.DataObject) -> None:
    """It holds the wanted posts and all above them, nothing else, with the parents they had."""
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


def test_what_a_post_says_comes_along() -> None:
    """Author, text and images are the thread's; a post without images has an empty list."""
    first, second = context_of(thread([-1, 0]), [1], [])

    assert (first["pictures"], len(second["pictures"])) == ([], 1)
    assert (second["author"], second["text"], second["missing"]) == ("ana", "t1", None)


def test_the_context_is_one_column_more() -> None:
    """A sample in context is a sample, and its posts have the types that threads give them."""
    columns = list(SAMPLES_IN_CONTEXT.columns)
    of_thread = {one.name: one.type for one in THREADS.schema.field("posts").type.value_type}
    of_context = SAMPLES_IN_CONTEXT.schema.field("context").type.value_type

    assert columns == [*SAMPLES.columns, "context"]
    assert SAMPLES_IN_CONTEXT.key == SAMPLES.key
    assert {one.name: one.type for one in of_context} == {name: of_thread[name] for name in FIELDS}
