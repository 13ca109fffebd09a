"""The card on models: which text they wrote, and what each stage asked whom."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.manifest import Manifest
from echo_hf.hub.markdown import escaped, table
from echo_hf.reasons import LeftOut

MODELS = "**Part of the text in this dataset was made with models.**"
RULES = (
    "**Part of the text in this dataset was made by plain rules**, where a full build asks models."
)
MADE = (
    "A prompt with `prompt_modified` was joined, completed or reworded by them, or read from a "
    "picture; `quality`, `kind`, `task`, `verdict` and `keyword` are their opinions. The other "
    "prompts and the comments are people's own words, in pieces that they chose."
)
OF_MODELS = {
    "outputs": "the pictures of `outputs` and the `text` beside them were made by the systems "
    "under test",
    "ratings": "the explanations in `ratings` were written by judges",
    "comparisons": "the choices in `comparisons`, and the reasons for them, are judges' own",
    "applicability": "the reasons in `applicability` were written by a model",
    "responses": "`responses` holds models' answers as they came",
}


# What is left to say of a config of which all texts are left out.
OF_MODELS_IN_SILENCE = {
    "outputs": "the pictures of `outputs` were made by the systems under test",
    "ratings": "the ratings were given by judges, whose explanations are left out",
    "comparisons": "the choices in `comparisons` are judges' own, whose reasons are left out",
    "applicability": "the answers in `applicability` were given by a model, whose reasons are left "
    "out",
}


def model_text(facts: ReleaseFacts, manifest: Manifest) -> str:
    """Which text models wrote, and which models they are, in Markdown.

    Args:
        facts: What the release says of itself.
        manifest: What was written.

    Returns:
        Paragraphs.
    """
    kinds = {(origin.get("engine") or {}).get("kind") for origin in facts.provenance.values()}
    makers = RULES if kinds - {None} == {"rules"} else MODELS
    return "\n\n".join([f"{makers} {MADE}", *_beside(facts, manifest), _models(facts)])


def provenance_table(facts: ReleaseFacts) -> str:
    """What made each stage's result: digests, and the signature of its engine."""
    rows = [_origin_row(*row) for row in facts.provenance.items()]
    return table(["Stage", "Digest", "Instructions", "Engine"], rows or [["none", "", "", ""]])


def _beside(facts: ReleaseFacts, manifest: Manifest) -> list[str]:
    silent = {name for name in OF_MODELS_IN_SILENCE if _is_silent(name, facts, manifest)}
    told = {name: OF_MODELS_IN_SILENCE[name] for name in silent}
    held = [told.get(name, said) for name, said in OF_MODELS.items() if name in manifest.configs]
    text = "; ".join(held)
    return [f"{text[0].upper()}{text[1:]}."] if text else []


def _is_silent(config: str, facts: ReleaseFacts, manifest: Manifest) -> bool:
    silenced = facts.left_out.get(config, {}).get(LeftOut.SILENCED.value, 0)
    return config in manifest.configs and silenced >= max(1, manifest.configs[config].rows)


def _models(facts: ReleaseFacts) -> str:
    stages: dict[str, list[str]] = {}
    for stage, origin in facts.provenance.items():
        if engine := origin.get("engine"):
            stages.setdefault(_name(engine), []).append(stage)
    if not stages:
        return "Which models those are is not recorded in this release."
    asked = "\n".join(
        f"- {name}, in {', '.join(map(escaped, some))}" for name, some in stages.items()
    )
    return f"In this build the engines were:\n\n{asked}"


def _name(engine: Mapping[str, Any]) -> str:
    if engine.get("kind") == "rules":
        return "plain rules, which are no model"
    named = engine.get("model") or "an unnamed model"
    return f"{escaped(named)} by {escaped(engine.get('kind') or 'an unnamed engine')}"


def _origin_row(stage: str, origin: Mapping[str, Any]) -> list[str]:
    engine, prompt = origin.get("engine"), origin.get("prompt")
    said = json.dumps(engine, sort_keys=True, ensure_ascii=False) if engine else "none"
    digests = (str(origin["digest"])[:16], str(prompt)[:16] if prompt else "none")
    return [escaped(cell) for cell in (stage, *digests, said)]
