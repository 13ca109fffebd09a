"""A list of prompts with a name: the benchmark's own, or a reference to compare with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from echo_hf.reasons import NotAnalyzed


@dataclass(frozen=True)
class PromptSet:
    """Prompts, and what was no prompt.

    Attributes:
        name: What tables and plots call it.
        prompts: The prompts, white space at their ends left out, none of them empty.
        ids: What each is called: a sample's id, or its place in the set from 0.
        left_out: How many rows are no prompts, by reason.
        source: Where they come from.
    """

    name: str
    prompts: tuple[str, ...]
    ids: tuple[str, ...]
    left_out: Mapping[NotAnalyzed, int] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)


def prompt_set(
    name: str,
    texts: Iterable[object],
    *,
    ids: Iterable[str] | None = None,
    source: Mapping[str, Any] | None = None,
) -> PromptSet:
    r"""Makes a prompt set of rows as they are found.

    Args:
        name: What to call it.
        texts: One value a row; what is no text, is empty, or holds half characters is left out
            and counted.
        ids: What each row is called; their places from 0 when null.
        source: Where they come from.

    Returns:
        The prompts.

    Example:
        >>> found = prompt_set("some", [" a cat\n", "", None, "a dog", "\ud800"])
        >>> found.prompts, found.ids
        (('a cat', 'a dog'), ('0', '3'))
        >>> {str(reason): rows for reason, rows in found.left_out.items()}
        {'no_text': 2, 'broken_text': 1}
    """
    rows = list(texts)
    named = [str(at) for at in range(len(rows))] if ids is None else list(ids)
    out: Counter[NotAnalyzed] = Counter()
    kept: list[tuple[str, str]] = []
    for name_of, text in zip(named, rows, strict=True):
        reason = _no_prompt(text)
        if reason is None:
            kept.append((name_of, str(text).strip()))
        else:
            out[reason] += 1
    prompts, known = tuple(text for _, text in kept), tuple(one for one, _ in kept)
    return PromptSet(name, prompts, known, left_out=dict(out), source=source or {})


def _no_prompt(text: object) -> NotAnalyzed | None:
    if not isinstance(text, str) or not text.strip():
        return NotAnalyzed.NO_TEXT
    try:
        text.encode()
    except UnicodeEncodeError:
        return NotAnalyzed.BROKEN_TEXT
    return None
