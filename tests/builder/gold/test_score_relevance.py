"""Scores of posts, against counts by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.builder.gold.lines import RelevanceLine
from echo_hf.builder.gold.measures import Scored, measured
from echo_hf.builder.gold.sample_scores import score_relevance

KEEP = (4, 5)


def line(name: str, score: int, *acceptable: int) -> RelevanceLine:
    """What somebody wrote down about a post."""
    url = f"https://example.org/{name}"
    return RelevanceLine(url=url, score=score, acceptable=acceptable or (score,))


def scored(lines: list[RelevanceLine], given: dict[str, int]) -> dict[str, Scored]:
    """The measures by name."""
    found = {f"https://example.org/{name}": score for name, score in given.items()}
    roots = {one.url: one.url for one in lines}
    return {one.name: one for one in score_relevance(lines, found, KEEP, roots)}


def test_counts_by_hand() -> None:
    """Three posts are kept, two of them rightly; one to keep is dropped, one not answered."""
    lines = [
        line("a", 5),
        line("b", 4, 4, 5),
        line("c", 1, 1, 2),
        line("d", 2),
        line("e", 5),
        line("f", 4, 3, 4),  # people would keep and drop it
        line("g", 5),
    ]
    given = {"a": 5, "b": 5, "c": 4, "d": 1, "e": 2, "f": 3}
    found = {name: measured("relevance", one) for name, one in scored(lines, given).items()}
    precision, recall = found["keep_precision"], found["keep_recall"]
    accuracy = found["score_accuracy"]

    assert (precision.value, precision.n, precision.skipped) == (2 / 3, 3, 1)
    assert (precision.answered, precision.asked) == (5, 6)
    assert (recall.value, recall.n, recall.answered, recall.asked) == (2 / 3, 3, 3, 4)
    assert recall.strict == 2 / 4
    # Dropped are d (rightly) and e; to drop are c (kept) and d.
    precision, recall = found["drop_precision"], found["drop_recall"]
    assert (precision.value, precision.n, precision.skipped) == (1 / 2, 2, 1)
    assert (precision.answered, precision.asked) == (5, 6)
    assert (recall.value, recall.n, recall.answered, recall.asked) == (1 / 2, 2, 2, 2)
    # Right are a, b and f.
    assert (accuracy.value, accuracy.n, accuracy.asked) == (3 / 6, 6, 7)


def test_items_say_what_was_expected() -> None:
    """Whoever tunes sees both sides."""
    accuracy = scored([line("a", 4, 4, 5), line("b", 1)], {"a": 2})["score_accuracy"]

    assert [(one.expected, one.given, one.score) for one in accuracy.items] == [
        ("4 or 5", "2", 0.0), ("1", "", None),
    ]  # fmt: skip


LINES = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.integers(1, 5), max_size=12)


@given(LINES, st.data())
def test_right_scores_are_right(scores: dict[str, int], data: st.DataObject) -> None:
    """What gold says scores one; and precision and recall are those of the two sets of posts."""
    lines = [line(name, score) for name, score in scores.items()]
    for one in scored(lines, scores).values():
        assert all(item.score == 1 for item in one.items)

    given = {name: data.draw(st.integers(1, 5)) for name in scores}
    found = {name: measured("relevance", one) for name, one in scored(lines, given).items()}
    kept = {name for name, score in given.items() if score >= 4}
    right = {name for name, score in scores.items() if score >= 4}
    every = set(scores)
    for side, given_side, right_side in (
        ("keep", kept, right),
        ("drop", every - kept, every - right),
    ):
        both = len(given_side & right_side)
        for measure, whole in (("precision", given_side), ("recall", right_side)):
            expected = both / len(whole) if whole else None
            assert found[f"{side}_{measure}"].value == expected
