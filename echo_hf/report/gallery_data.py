"""The gallery's data: one JSON text, from which a script shows a few samples at a time.

Explanations repeat, and names even more, so that rows name systems, judges and texts by number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from echo_hf.report.markup import is_web, shown
from echo_hf.report.parts import titled
from echo_hf.report.run_data import RunData
from echo_hf.report.samples import Output, Rating, Sample
from echo_hf.report.thumbnails import Thumbnails

# What would end the script element that holds the data, or a line of a script.
UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


class Numbered:
    """Texts by number, in the order in which they came.

    Example:
        >>> texts = Numbered()
        >>> texts.number("b"), texts.number("a"), texts.number("b"), texts.number(None)
        (0, 1, 0, None)
        >>> texts.all
        ['b', 'a']
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str | None) -> int | None:
        """The number of a text; null for none."""
        if text is None:
            return None
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def all(self) -> list[str]:
        """The texts by number."""
        return list(self._numbers)


def gallery_data(data: RunData, thumbnails: Thumbnails, problems: Mapping[str, str]) -> str:
    """All samples as the gallery's script reads them.

    Args:
        data: The run.
        thumbnails: Small copies of the pictures.
        problems: Why pictures cannot be shown, by digest.

    Returns:
        JSON that may stand in a page as it is.
    """
    texts, pictures = Numbered(), Numbered()
    row = _Rows(data, texts, pictures, problems)
    samples = [row.sample(one) for one in data.samples]
    found = {
        "systems": data.systems,
        "failed": data.failures,
        "names": {
            name: titled(name)
            for one in data.samples
            for name in (one.split, one.task or "")
            if name
        },
        "samples": samples,
        "texts": texts.all,
        "pictures": [_picture(digest, thumbnails) for digest in pictures.all],
    }
    text = json.dumps(_shown(found), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(UNSAFE)


def _shown(value: Any) -> Any:
    """The same data with every text as a page can show it."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, Mapping):
        return {shown(name): _shown(one) for name, one in value.items()}
    return [_shown(one) for one in value] if isinstance(value, list | tuple) else value


def _picture(digest: str, thumbnails: Thumbnails) -> list[str | int] | None:
    found = thumbnails.get(digest)
    return [found.source, found.width, found.height] if found else None


class _Rows:
    """Makes rows of the gallery's data."""

    def __init__(
        self, data: RunData, texts: Numbered, pictures: Numbered, problems: Mapping[str, str]
    ) -> None:
        self._data, self._texts, self._pictures, self._problems = data, texts, pictures, problems
        self._systems = {system: at for at, system in enumerate(data.systems)}

    def sample(self, one: Sample) -> dict[str, Any]:
        outputs = [self._output(one, system) for system in self._data.systems]
        ratings = [self._rating(rating) for rating in self._data.ratings.get(one.id, ())]
        filled: dict[str, Any] = {
            "task": one.task,
            "inputs": [self._pictures.number(digest) for digest in one.inputs],
            "posted": [self._pictures.number(digest) for digest in one.posted],
            "urls": [url for url in one.urls if is_web(url)],
            "feedback": [[said.text, said.verdict, said.keyword] for said in one.feedback],
            "flags": one.flags,
            "ratings": ratings,
        }
        known = {name: value for name, value in filled.items() if value}
        return {"id": one.id, "split": one.split, "prompt": one.prompt, "outputs": outputs, **known}

    def _output(self, sample: Sample, system: str) -> list[Any] | None:
        """Picture, outcome, reason, text; null where it was not tried."""
        found = self._data.outputs.get((sample.id, system))
        if found is None:
            return None
        row = [self._pictures.number(found.picture), *self._ended(found)]
        while row and row[-1] is None:
            row.pop()
        return row

    def _ended(self, found: Output) -> list[Any]:
        problem = self._problems.get(found.picture or "")
        outcome = None if found.outcome == "ok" else found.outcome
        reason = problem or found.reason
        return [(problem and "cannot be shown") or outcome, reason, self._texts.number(found.text)]

    def _rating(self, one: Rating) -> list[Any]:
        """System, judge, rubric, repeat, value, explanation, outcome."""
        number = self._texts.number
        outcome = None if one.outcome == "ok" else one.outcome
        return [
            self._systems.get(one.system),
            number(one.judge),
            number(one.rubric),
            one.repeat,
            one.value,
            number(one.explanation or None),
            outcome,
        ]
