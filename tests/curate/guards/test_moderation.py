"""What a moderation endpoint says, and what others say in its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.config.sections import Hazard, in_order
from echo_hf.curate.guards import KNOWN_CATEGORIES, MODERATION, read_categories
from echo_hf.pipeline.answers import RawText

# All labels of the endpoint, and the codes that come nearest.
LABELS = {
    "harassment": "S10",
    "harassment/threatening": "S1",
    "hate": "S10",
    "hate/threatening": "S10",
    "illicit": "S2",
    "illicit/violent": "S1",
    "self-harm": "S11",
    "self-harm/instructions": "S11",
    "self-harm/intent": "S11",
    "sexual": "S12",
    "sexual/minors": "S4",
    "violence": "S1",
    "violence/graphic": "S1",
}


def answer(*fitting: str, flagged: bool | None = None, **others: Any) -> str:
    return json.dumps(
        {
            "flagged": bool(fitting) if flagged is None else flagged,
            "categories": {label: label in fitting for label in (*LABELS, *fitting)},
            "category_scores": dict.fromkeys(LABELS, 0.25),
            "model": "some-moderation",
            **others,
        }
    )


VERDICTS = {
    answer(): [],
    answer("violence", "sexual/minors"): ["S1", "S4"],
    answer("violence", "violence/graphic"): ["S1"],
    answer(flagged=True): ["unknown"],
    answer("violence", flagged=False): ["S1"],
    answer("bad taste"): ["unknown"],
    answer("bad taste", "hate"): ["S10", "unknown"],
    '{"flagged": false, "categories": {}}': [],
    '{"flagged": true, "categories": {"illicit": null, "hate": true}}': ["S10"],
}
NO_VERDICTS = [
    "",
    "safe",
    "null",
    "[]",
    "{}",
    '{"flagged": false}',
    '{"categories": {}}',
    '{"flagged": "no", "categories": {}}',
    '{"flagged": 0, "categories": {}}',
    '{"flagged": false, "categories": {"hate": 0}}',
    '{"flagged": false, "categories": ["hate"]}',
    '{"flagged": false, "categories": {"\\ud800": true}}',
    '{"flagged": false, "categories": {}',
    'Here it is: {"flagged": false, "categories": {}}',
    '{"flagged": false, "categories": {"' + "x" * 101 + '": true}}',
    json.dumps({"flagged": False, "categories": {str(n): False for n in range(201)}}),
    "[" * 100_000,
]


def test_every_label_has_its_code() -> None:
    assert {label: str(code) for label, code in KNOWN_CATEGORIES.items()} == LABELS


@pytest.mark.parametrize("text", VERDICTS, ids=lambda text: str(VERDICTS[text]))
def test_verdicts_by_hand(text: str) -> None:
    made = read_categories(text)
    assert made is not None
    assert in_order(made.hazards) == VERDICTS[text]


@pytest.mark.parametrize("text", NO_VERDICTS, ids=lambda text: text[:40])
def test_all_else_is_no_verdict(text: str) -> None:
    assert read_categories(text) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["flagged", "categories", "hate", "odd"]), inner)
    ),
    max_leaves=8,
)


@given(st.text() | JSON.map(json.dumps))
def test_any_text_is_read(text: str) -> None:
    made = read_categories(text)

    if made is not None:
        said = json.loads(text)
        told = [said["flagged"], *said["categories"].values()]
        assert bool(made.hazards) is (True in told)
        assert bool(made.strange) is (Hazard.UNKNOWN in made.hazards)


def test_it_is_shown_one_image_at_a_time() -> None:
    assert MODERATION.most_pictures == 1
    assert MODERATION.read(RawText(answer("hate"))) == read_categories(answer("hate"))
