"""What a server understands of the requests, learnt from what it does not.

Servers differ in whether they enforce a schema and in what they call the longest answer. The first
request tries; what the server says it does not know is asked in the other way, and when that
succeeds, so is everything after it.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from typing import Literal

from echo_hf.engines.openai.options import Options
from echo_hf.engines.openai.reply import Fault

REFUSED = frozenset({400, 422})
# Errors may quote the request, and so what people posted: only their beginning speaks of it.
BEGINNING = 500
SCHEMA = re.compile(
    r"response[ _.]?format|json[ _]?schema|structured[ _]?output|guided[ _]|grammar", re.IGNORECASE
)
UNKNOWN = re.compile(
    r"un(?:supported|known|recogni[sz]ed|expected)|not (?:supported|permitted|allowed)"
    r"|extra (?:inputs|fields)|cannot find field",
    re.IGNORECASE,
)
HOSTS_WITH_COMPLETION_TOKENS = frozenset({"api.openai.com"})

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way to put a request.

    Attributes:
        structured: How the shape of an answer is asked for.
        max_tokens_field: What the longest answer is called.
    """

    structured: Literal["json_schema", "json_object", "text"]
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"]


class Dialects:
    """The way in which a server is asked, as far as it is known.

    Args:
        options: Options of the engine; what they fix is not tried in another way.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self.current = _first(options)

    def other(self, spoken: Dialect, fault: Fault) -> Dialect | None:
        """What to try after a server did not understand.

        Args:
            spoken: How it was asked.
            fault: What it answered.

        Returns:
            Another way; null when this failure has nothing to do with the way.
        """
        if fault.status not in REFUSED:
            return None
        options, said = self._options, f"{fault.param or ''} {fault.message[:BEGINNING]}"
        if (
            options.structured == "auto"
            and spoken.structured == "json_schema"
            and SCHEMA.search(said)
        ):
            return replace(spoken, structured="text")
        first = _first(options)
        unheard = options.max_tokens_field == "auto" and (
            spoken.max_tokens_field == first.max_tokens_field
        )
        if unheard and spoken.max_tokens_field in said and UNKNOWN.search(said):
            return replace(spoken, max_tokens_field=_counterpart(spoken))
        return None

    def understood(self, spoken: Dialect) -> None:
        """Makes a way that worked, after another had not, that of all further requests."""
        if spoken == self.current:
            return
        if spoken.structured != self.current.structured:
            logger.warning(
                "%s does not enforce a JSON schema: it is asked for in words, and answers are "
                "checked all the same",
                self._options.server.host,
            )
        self.current = spoken


def _first(options: Options) -> Dialect:
    field = options.max_tokens_field
    if field == "auto":
        newer = options.server.host in HOSTS_WITH_COMPLETION_TOKENS
        field = "max_completion_tokens" if newer else "max_tokens"
    return Dialect("json_schema" if options.structured == "auto" else options.structured, field)


def _counterpart(spoken: Dialect) -> Literal["max_tokens", "max_completion_tokens"]:
    older = spoken.max_tokens_field == "max_tokens"
    return "max_completion_tokens" if older else "max_tokens"
