"""Find texts inside quotation marks, code fences and JSON objects."""

from __future__ import annotations

import re
from collections.abc import Iterator

from echo_hf.engines.rules.phrases import JSON_START
from echo_hf.engines.rules.spans import LONGEST_PROMPT, Span

# Never the opening mark inside: a run of opening marks would be searched again from each of them.
QUOTED = re.compile(
    rf'(?<!\w)"(?=\S)([^"]{{1,{LONGEST_PROMPT}}})"(?!\w)|(?<!\w)‘([^‘’]{{1,{LONGEST_PROMPT}}})’(?!\w)|'
    + "|".join(
        rf"{opening}([^{opening}{closing}]{{1,{LONGEST_PROMPT}}}){closing}"
        for opening, closing in ("“”", "„“", "«»", "「」", "『』")
    )
)
JSON_TOKEN = re.compile(r"\\.|[{}\"]")
FENCE = "```"
LANGUAGE = re.compile(r"[\w+-]{0,20}\n")


def quoted(text: str, span: Span) -> Iterator[Span]:
    """The insides of quotation marks in a part of a text.

    Example:
        >>> [one.of('so "a b" and «c»') for one in quoted('so "a b" and «c»', Span(0, 16))]
        ['a b', 'c']
    """
    for match in QUOTED.finditer(text, *span):
        yield Span(*match.span(match.lastindex or 0))


def fenced(text: str, start: int = 0) -> Iterator[Span]:
    r"""The insides of code fences, from a place on.

    Example:
        >>> [span.of("```text\na cat\n```") for span in fenced("```text\na cat\n```")]
        ['a cat\n']
    """
    opening = text.find(FENCE, start)
    while opening >= 0:
        closing = text.find(FENCE, opening + len(FENCE))
        if closing < 0:
            return
        language = LANGUAGE.match(text, opening + len(FENCE), closing)
        yield Span(language.end() if language else opening + len(FENCE), closing)
        opening = text.find(FENCE, closing + len(FENCE))


def json_objects(text: str) -> Iterator[Span]:
    r"""The outermost JSON objects with a key; only brackets and strings are looked at.

    Example:
        >>> text = 'use {"style": {"look": "a } b"}} now {x}'
        >>> [span.of(text) for span in json_objects(text)]
        ['{"style": {"look": "a } b"}}']
    """
    depth, opening, in_string = 0, 0, False
    for match in JSON_TOKEN.finditer(text):
        mark = match.group()
        if mark == '"':
            in_string = depth > 0 and not in_string
        elif mark == "{" and not in_string:
            opening = opening if depth else match.start()
            depth += 1
        elif mark == "}" and depth and not in_string:
            depth -= 1
            if not depth and JSON_START.match(text, opening):
                yield Span(opening, match.end())
