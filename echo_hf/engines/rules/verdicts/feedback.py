"""Answer what kind of task a sample is, and what comments say about its result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from echo_hf.engines.rules.names import Names, names_of
from echo_hf.engines.rules.reading import Reading
from echo_hf.engines.rules.verdicts.clauses import Asked
from echo_hf.engines.rules.verdicts.judging import Beside, judge
from echo_hf.engines.rules.verdicts.judging_words import NEGATORS, REMOVAL
from echo_hf.engines.rules.verdicts.lexicon import plain_words
from echo_hf.engines.rules.verdicts.tasks import kind_and_task

# What a prompt forbids, or wants kept, says nothing of what a picture shows.
FORBIDS = NEGATORS | {"avoid", "keep", "change"}
REACH = 5


def feedback(inputs: Mapping[str, Any]) -> str | None:
    """Answers a feedback request.

    Args:
        inputs: prompt, quality, inputs, outputs, comments (comment, text, by_author of each) and
            target.

    Returns:
        The answer as JSON; a comment in a language that the word lists do not cover is left out of
        it. Null where they cover no comment, or, where nobody commented, not the prompt.
    """
    names = names_of(inputs["target"])
    prompt = Reading(inputs["prompt"] or "", names)
    kind, task = kind_and_task(prompt, inputs)
    beside = _beside(prompt, names) if kind else Beside("", names, frozenset(), Asked())
    comments = [(one["comment"], Reading(one["text"] or "", names)) for one in inputs["comments"]]
    verdicts = [(number, judge(reading, beside)) for number, reading in comments]
    judged = [{"comment": number, **said._asdict()} for number, said in verdicts if said]
    if not (judged if comments else prompt.covered):
        return None
    return json.dumps({"kind": kind, "task": task, "feedback": judged})


def _beside(prompt: Reading, names: Names) -> Beside:
    words = plain_words(prompt.folded)
    forbidden: set[int] = set()
    for at, word in enumerate(words):
        if word in FORBIDS:
            forbidden.update(range(at, at + REACH))
    shown = frozenset(word for at, word in enumerate(words) if at not in forbidden)
    removal = not REMOVAL.isdisjoint(words)
    return Beside(prompt.text, names, frozenset(words), Asked(shown, removal))
