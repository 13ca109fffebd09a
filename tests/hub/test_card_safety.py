"""The card says who looked for unsafe content, what that misses, and what was not done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from echo_hf.hub.card_sections import privacy_text, safety_text
from echo_hf.hub.facts import ReleaseFacts
from tests.markdown_for_tests import cells, shown

GUARD = "meta-llama/Llama-Guard-4-12B"


def guarded(facts: ReleaseFacts, engine: Mapping[str, Any] | None, **more: Any) -> ReleaseFacts:
    """The facts of a build with a safety stage that this engine answered."""
    return replace(facts, provenance={"safety": {"digest": "ab" * 32, "engine": engine}}, **more)


def test_a_build_without_a_guard_says_so(facts: ReleaseFacts) -> None:
    """Unscreened is said in the first words, whatever the columns are called."""
    assert safety_text(facts).startswith("**No safety model has looked at these samples**")


def test_plain_rules_are_no_guard(facts: ReleaseFacts) -> None:
    """What rules left open is called unscreened, and no recall of a model is quoted."""
    said = safety_text(guarded(facts, {"kind": "rules"}))
    assert said.startswith("**Plain rules or recorded answers stood in for a safety model.**")
    assert "Recall" not in said


def test_the_recall_is_what_the_model_card_states(facts: ReleaseFacts) -> None:
    """The figures of the guard's own card for one image and for several, with their source."""
    said = safety_text(guarded(facts, {"kind": "vllm", "model": GUARD}))
    rows = cells(said)
    assert ["one image", "41 %", "9 %"] in rows
    assert ["several images", "61 %", "9 %"] in rows
    assert "/PurpleLlama/blob/main/Llama-Guard4/12B/MODEL_CARD.md)" in said
    assert GUARD in shown(said)


def test_the_recall_of_another_guard_is_unknown(facts: ReleaseFacts) -> None:
    """No figure is given for a model whose card nobody has read."""
    said = safety_text(guarded(facts, {"kind": "openai", "model": "acme/guard"}))
    assert "How much this model misses is not known here" in said
    assert "%" not in said


@pytest.mark.parametrize(
    ("funnel", "removed", "said"),
    [
        ({"splits": {"rejected": {"flagged": 1200}}}, ("S1", "S4"), "1,200 were taken out"),
        ({"splits": {"rejected": {}}}, ("S1",), "0 were taken out"),
        ({}, ("S1",), "how many were taken out is unknown"),
    ],
)
def test_what_was_removed_is_counted(
    facts: ReleaseFacts, funnel: Any, removed: tuple[str, ...], said: str
) -> None:
    """The number is that of the splits stage; where there is none, it is unknown and not 0."""
    engine = {"kind": "vllm", "model": GUARD}
    text = shown(safety_text(guarded(facts, engine, funnel=funnel, removed_categories=removed)))
    assert said in text
    meanings = {"S1": "violent crimes", "S4": "sexual exploitation of children"}
    assert f"Removed: {', '.join(f'{one} ({meanings[one]})' for one in removed)}." in text


def test_what_is_named_and_not_removed_is_explained(facts: ReleaseFacts) -> None:
    """Why style requests stay is said where they stay, and only there."""
    engine = {"kind": "vllm", "model": GUARD}
    every = tuple(f"S{number}" for number in range(1, 15))
    for removed in (every, tuple(one for one in every if one != "S8")):
        text = shown(safety_text(guarded(facts, engine, removed_categories=removed)))
        assert ("S8 (intellectual property) is named and not removed" in text) == (
            "S8" not in removed
        )


def test_unknown_categories_are_said_to_be_unknown(facts: ReleaseFacts) -> None:
    """A build that does not state which categories it removes is not given the usual ones."""
    text = safety_text(guarded(facts, {"kind": "vllm", "model": GUARD}))
    assert "which categories those are is not stated by this build" in text


@pytest.mark.parametrize(("stages", "masked"), [((), False), (("privacy",), True)])
def test_masking_is_claimed_only_where_it_was_done(
    facts: ReleaseFacts, stages: tuple[str, ...], masked: bool
) -> None:
    """Without the stage that masks, the card says that comments stand as they were posted."""
    provenance = {stage: {"digest": "ab" * 32, "engine": None} for stage in stages}
    said = privacy_text(replace(facts, provenance=provenance))
    assert ("are masked." in said) is masked
    assert ("Feedback stands as it was posted" in said) is not masked
