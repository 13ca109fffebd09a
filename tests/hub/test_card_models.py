"""The card says which text models wrote, and which models they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from echo_hf.hub.card_sections import model_text, provenance_table
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.manifest import ConfigEntry, make_manifest
from tests.markdown_for_tests import cells, shown


def said(facts: ReleaseFacts, *configs: str) -> str:
    """The text for a release with these configs, as a reader sees it."""
    entry = ConfigEntry(rows=1, pictures=0, loaded_bytes=1, digest="1" * 64, files=())
    return shown(model_text(facts, make_manifest(facts, dict.fromkeys(configs, entry))))


def made_by(facts: ReleaseFacts, **engines: Any) -> ReleaseFacts:
    """The facts of a build whose stages were answered by these engines."""
    provenance = {stage: {"digest": "d", "engine": engine} for stage, engine in engines.items()}
    return replace(facts, provenance=provenance)


def test_that_models_made_text_is_said_first(facts: ReleaseFacts) -> None:
    """Every card of a build with a model says so, with the model and its stages."""
    vllm = {"kind": "vllm", "model": "acme/reader"}
    text = said(made_by(facts, extract=vllm, roles=vllm, splits=None), "text_to_image")
    assert text.startswith("Part of the text in this dataset was made with models.")
    assert "acme/reader by vllm, in extract, roles" in text
    assert "splits" not in text


def test_rules_are_not_called_models(facts: ReleaseFacts) -> None:
    """Where plain rules did all of it, the card claims no model."""
    text = said(made_by(facts, extract={"kind": "rules"}), "text_to_image")
    assert text.startswith("Part of the text in this dataset was made by plain rules")
    assert "made with models" not in text


def test_models_without_a_name_stay_unknown(facts: ReleaseFacts) -> None:
    """What is not recorded is said to be unknown, never left out."""
    assert "an unnamed model by openai" in said(made_by(facts, extract={"kind": "openai"}))
    assert "is not recorded in this release" in said(made_by(facts))


def test_other_configs_say_what_of_them_models_wrote(facts: ReleaseFacts) -> None:
    """Judges' explanations are named where the release holds them, and only there."""
    assert "explanations in ratings were written by judges" in said(facts, "ratings")
    assert "ratings" not in said(facts, "text_to_image")


def test_every_stage_has_its_digests(facts: ReleaseFacts) -> None:
    """The table of stages shows the digest of the stage and that of its instructions."""
    rows = cells(provenance_table(facts))
    assert rows[1][:3] == ["relevance", "abab" * 4, "efef" * 4]
    assert rows[2] == ["splits", "cdcd" * 4, "none", "none"]
