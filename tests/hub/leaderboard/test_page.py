"""What visitors see: every figure as it is, every reason, and nothing of others as markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.hub.leaderboard import EVERY, NO_RESULTS, ScoredRelease, shown
from tests.hub.leaderboard.scored_for_tests import COUNT, DEFINITION, SPLIT, figure, ratings

SEEN = frozenset((f"s{at}", f"{at:064x}") for at in range(COUNT))
OURS = {"style", "div", "h3", "h4", "p", "table", "thead", "tbody", "tr", "th", "td"} | {
    *("svg", "path", "circle")
}
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


class Markup(HTMLParser):
    """Names of elements and of attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element."""
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}


def release(tag: str, *figures: dict[str, Any], **more: Any) -> ScoredRelease:
    """A release with these figures, whose judge rated the systems a and b."""
    rows = ratings({"qwen": {"a": 8.0, "b": 3.0}}).data.table
    known = {"target": "Pixelbloom", "samples": {SPLIT: SEEN}, "ratings": rows}
    return ScoredRelease(tag, f"c-{tag}", figures=figures, **{**known, **more})


def words(page: str) -> str:
    """The page without its markup."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def test_a_board_shows_every_figure() -> None:
    """Rate, interval, tier and coverage of each system, who judged, and on how many samples."""
    page = shown([release("v1", figure("b", 0.25, coverage=0.9), figure("a", 0.75))], "v1", SPLIT)

    assert "v1: text_to_image" in words(page)
    assert "protocol corrected; judged by qwen; 20 samples" in words(page)
    assert "a 0.750 0.650 to 0.850 1 100 % b 0.250 0.150 to 0.350 2 90 %" in words(page)
    assert "M130.0 8H170.0" in page  # from 0.65 to 0.85 of 200


def test_a_single_judge_says_where_it_is_from() -> None:
    """Nobody takes it for a published figure."""
    one = [release("v1", figure("a", 0.5), figure("b", 0.5))]

    assert "a 1.000" in words(shown(one, "v1", SPLIT, "corrected", "qwen"))
    assert "computed from the released ratings" in words(shown(one, "v1", SPLIT, judge="qwen"))
    assert "computed" not in words(shown(one, "v1", SPLIT, judge=EVERY))


def test_a_failed_audit_is_a_flag() -> None:
    """With the judge and the honeypots that it failed on."""
    definition = {**DEFINITION, "failed_audit": {"qwen": ["blank", "swapped"]}}
    page = shown([release("v1", figure("a", 0.5, definition=definition))], "v1", SPLIT)

    assert "qwen failed its audit: blank, swapped" in words(page)


def test_metrics_have_a_direction_or_a_reason() -> None:
    """A reason that is everybody's is told once."""
    why = {"missing": "face_identity needs packages"}
    page = shown(
        [
            release(
                "v1",
                figure("a", 9.5, metric="color_shift"),
                *(figure(name, None, metric="face_identity", definition=why) for name in "ab"),
            )
        ],
        "v1",
        SPLIT,
    )

    assert "color_shift ↓ value 95 % n coverage a 9.500 9.400 to 9.600 20 100 %" in words(page)
    assert words(page).count("face_identity ↑: face_identity needs packages") == 1


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (("v1", SPLIT), NO_RESULTS),
        (("v9", SPLIT), "no such release"),
        ((None, None), "no such release"),
        (("v2", None), "choose a split and a protocol"),
        (("v2", SPLIT, "mine"), "choose a split and a protocol"),
        (("v2", "no such split"), "no win rates here"),
        (("v2", SPLIT, "corrected", None, "v1"), f"nothing to compare with: {NO_RESULTS}"),
        (("v2", SPLIT, "corrected", None, "v9"), "nothing to compare with: no such release"),
    ],
)
def test_what_cannot_be_shown_says_why(chosen: tuple[Any, ...], expected: str) -> None:
    """A release without results, and choices that are none."""
    bare = ScoredRelease("v1", "c1", "Pixelbloom", problem=NO_RESULTS)
    assert expected in words(shown([release("v2", figure("a", 0.5)), bare], *chosen))


def test_an_empty_repository_and_a_hub_out_of_reach_are_told() -> None:
    """Instead of an empty page."""
    assert words(shown([], None, None)) == "no release to show"
    assert words(shown([], None, None, problem="cannot read <it>")).startswith("cannot read")


def test_two_boards_stand_together_only_where_they_compare() -> None:
    """Else a sentence stands in the place of the second."""
    a, b = release("v1", figure("a", 0.125)), release("v2", figure("a", 0.625))
    apart = release("v3", figure("a", 0.375), samples={SPLIT: frozenset({("z", "1")})})
    together = words(shown([a, b, apart], "v1", SPLIT, beside="v2"))
    alone = words(shown([a, b, apart], "v1", SPLIT, beside="v3"))

    assert "0.125" in together
    assert "0.625" in together
    assert "0.375" not in alone
    assert "not comparable: no sample is in both" in alone


@given(st.text(max_size=60).map(lambda text: text + HOSTILE) | st.text(max_size=60))
def test_nothing_of_others_is_markup(text: str) -> None:
    """Tags, systems, judges, metrics, splits and reasons, whatever they hold."""
    definition = {"judges": [text], "failed_audit": {text: [text]}, "missing": text}
    figures = [
        figure(text, 0.5, definition=definition, split=text),
        figure("a", None, metric=text, definition=definition, split=text),
        figure(text, 1.0, metric=text, definition=definition, split=text),
    ]
    page = shown([release(text or "v", *figures, target=text)], text or "v", text, judge=text)
    found = Markup(page + shown([], text, text, problem=text))

    assert found.elements <= OURS
    assert not {name for name in found.attributes if name.startswith(("on", "href", "src"))}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 7.0, -3.0])
def test_numbers_beyond_the_axis_stay_on_it(value: float) -> None:
    """A published rate's interval may reach beyond 0 and 1; what is no number is a dash."""
    page = shown([release("v1", figure("a", value, low=value, high=value))], "v1", SPLIT)
    places = [float(one) for one in re.findall(r'cx="([^"]*)"', page)]

    assert all(0 <= place <= 200 for place in places)
    assert "nan" not in page
    assert "inf" not in words(page).replace("informal", "")
