"""No model: plain rules over the words of posts, for the quickstart, tests, and whoever asks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from echo_hf.engines.base import ABSTAINED, Completion, Request, register
from echo_hf.engines.rules.images import roles, screenshots
from echo_hf.engines.rules.threads import extract, relevance
from echo_hf.engines.rules.verdicts import feedback
from echo_hf.errors import EngineError

Rule = Callable[[Mapping[str, Any]], str | None]
RULES: Mapping[str, Rule] = {
    "relevance": relevance,
    "extract": extract,
    "roles": roles,
    "screenshots": screenshots,
    "feedback": feedback,
}


@register("rules", "no model: plain rules, for a trial and for tests")
class RulesEngine:
    """Answers requests by rules over their structured fields; needs no model and no network."""

    stored = False
    abstains = True

    def __init__(self, **options: Any) -> None:
        """Takes none; a config's options arrive here."""
        if options:
            # Their values may be secret.
            given = sorted(options)
            raise EngineError(f"engine 'rules' takes no options, got {given!r}: remove them")

    def signature(self) -> dict[str, Any]:
        """The kind, and a digest of the rules' own source."""
        return {"kind": "rules", "source": self._source}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Yields (number of the request, completion) in order."""
        for number, request in enumerate(requests):
            yield number, answered(request)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing: there is nothing to free."""

    @cached_property
    def _source(self) -> str:
        digest = hashlib.sha256()
        folder = Path(__file__).parent
        for name in sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.py")):
            digest.update(name.encode() + b"\0" + (folder / name).read_bytes())
        return digest.hexdigest()


def answered(request: Request) -> Completion:
    """The rules' answer to one request."""
    rule = RULES.get(request.task)
    text = rule(request.inputs) if rule else None
    return ABSTAINED if text is None else Completion(text)
