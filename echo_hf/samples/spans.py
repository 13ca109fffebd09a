"""Find a prompt in the text it was taken from, and give texts as places in posts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from types import NoneType
from typing import Any, NamedTuple

from echo_hf.errors import SpanError

# A word; or one character of a script that writes no spaces; or one mark.
TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u9fff\uac00-\ud7af]+|[^\w\s]"
)
SHORTEST_SPAN = 3
MOST_SPANS = 8
MOST_PLACES = 256  # of one span in the texts: a word a thousand times stays cheap
Place = tuple[int, int]
LONGEST_TEXT = 1_000_000
MOST_WORDS = 8  # of one insertion
MOST_CHARACTERS = 80  # of one insertion, white space counted once
MOST_INSERTED = 1 / 3  # of a text's words
WORD = re.compile(r"\w")
REPEATED_WORDS = 3  # in a row, of an insertion: fewer stand in many posts by chance
MASK = re.compile(r"\[[a-z-]{1,16}\]")  # it tells nothing of what it covers
Pair = tuple[re.Match[str], re.Match[str]]
SourcePlace = tuple[str | None, str | None]


class Span(NamedTuple):
    """A run of tokens that a prompt shares with a text."""

    tokens: int
    text: int
    start: int


@dataclass
class SpanIndex:
    texts: Sequence[str]
    shortest: int = SHORTEST_SPAN

    @cached_property
    def _found(self) -> list[tuple[list[str], list[int]]]:
        found = [list(TOKEN.finditer(text)) for text in self.texts]
        return [([one.group() for one in every], [one.start() for one in every]) for every in found]

    def spans(self, prompt: str) -> list[Span | None]:
        """Cuts a prompt into the longest spans, greedily from its beginning."""
        tokens, at = TOKEN.findall(prompt), 0
        known: dict[tuple[str, ...], list[Place]] = {gram: [] for gram in self._grams(tokens)}
        for number, (found, _) in enumerate(self._found):
            for place, gram in enumerate(self._grams(found)):
                if gram in known and len(known[gram]) < MOST_PLACES:
                    known[gram].append((number, place))
        cut: list[Span | None] = []
        while at < len(tokens):
            places, length = known.get(tuple(tokens[at : at + self.shortest]), []), self.shortest
            while places and at + length < len(tokens):
                longer = [one for one in places if self._goes_on(one, length, tokens[at + length])]
                if not longer:
                    break
                places, length = longer, length + 1
            if places:
                number, start = places[0]
                cut.append(Span(length, number, self._found[number][1][start]))
            else:
                cut.append(None)
            at += length if places else 1
        return cut

    def holds(self, prompt: str) -> bool:
        """Whether a prompt is made of spans of the texts."""
        if not prompt.split():
            return False
        if any(squeezed(prompt) in squeezed(text) for text in self.texts):
            return True
        cut = self.spans(prompt)
        return len(cut) <= MOST_SPANS and all(cut)

    def _goes_on(self, place: Place, offset: int, token: str) -> bool:
        tokens, at = self._found[place[0]][0], place[1] + offset
        return at < len(tokens) and tokens[at] == token

    def _grams(self, tokens: Sequence[str]) -> Iterator[tuple[str, ...]]:
        return zip(*(tokens[start:] for start in range(self.shortest)), strict=False)


def span_start(prompt: str, text: str) -> int:
    """Where a prompt's longest span stands in the text of its post."""
    start = text.find(prompt) if prompt else -1
    if start < 0:
        spans = [span for span in SpanIndex([text]).spans(prompt) if span]
        start = max(spans, key=lambda span: span.tokens).start if spans else -1
    return start


def squeezed(text: str) -> str:
    return " ".join(text.split())


class Source(NamedTuple):
    post_url: str | None
    field: str
    text: str


class SourceSpan(NamedTuple):
    """A piece of a text: characters of a source, or words that were put in."""

    post_url: str | None = None
    field: str | None = None
    start: int | None = None
    end: int | None = None
    text: str | None = None


KINDS = {"post_url": str, "field": str, "start": int, "end": int, "text": str}


def sources_of(posts: Iterable[Mapping[str, Any]]) -> list[Source]:
    """All texts of some posts: what they say, and how their images are described."""
    every = []
    for post in posts:
        texts = {"text": post["text"]}
        for number, image in enumerate(post["pictures"] or []):
            texts[f"pictures.{number}.alt_text"] = image["alt_text"]
        every += [Source(post["url"], field, text) for field, text in texts.items() if text]
    return every


def spans_from(rows: Iterable[Any]) -> list[SourceSpan]:
    """Spans as a table or JSON holds them, which may come from anywhere."""
    spans = []
    for row in rows:
        fits = isinstance(row, Mapping) and set(row) == set(KINDS)
        if not fits or any(type(row[name]) not in (kind, NoneType) for name, kind in KINDS.items()):
            raise SpanError(f"{str(row)[:80]!r} is not a span, expected {', '.join(KINDS)}")
        spans.append(SourceSpan(**row))
    return spans


def spans_of(text: str, sources: Sequence[Source]) -> tuple[SourceSpan, ...] | None:
    """Takes a text apart into places of the sources, with few words in between."""
    if len(text) > LONGEST_TEXT:
        return None
    for source in sources:
        if text and (start := source.text.find(text)) >= 0:
            return (SourceSpan(*source[:2], start, start + len(text)),)
    found: list[SourceSpan] = []  # what belongs to no span, white space included, is put in
    at = 0
    for start, end, span in _placed(text, sources):
        if start > at:
            found.append(SourceSpan(text=text[at:start]))
        found.append(span)
        at = end
    if at < len(text):
        found.append(SourceSpan(text=text[at:]))
    inserted = [MASK.sub(" ", span.text) for span in found if span.text is not None]
    words = [len(_words(one)) for one in inserted]
    may_be_given = (
        max(words, default=0) <= MOST_WORDS
        and all(len(squeezed(one)) <= MOST_CHARACTERS for one in inserted)
        and sum(words) <= MOST_INSERTED * len(_words(MASK.sub(" ", text)))
    )
    return tuple(found) if may_be_given else None


def text_of(spans: Iterable[SourceSpan], sources: Iterable[Source]) -> str:
    """Puts a text together again."""
    texts: dict[SourcePlace, str] = {(one.post_url, one.field): one.text for one in sources}
    pieces: list[str] = []
    length = 0
    for span in spans:
        whole = texts.get((span.post_url, span.field), "")
        start, end = -1 if span.start is None else span.start, span.end or 0
        if span.text is not None and span[:4] == (None,) * 4:
            piece = span.text
        elif span.text is None and 0 <= start < end <= len(whole):
            piece = whole[start:end]
        else:
            shown = tuple(span._replace(text=span.text and span.text[:40]))
            raise SpanError(f"span {str(shown)[:200]} is not a place in a text of the posts")
        pieces.append(piece)
        length += len(piece)
        if length > LONGEST_TEXT:
            raise SpanError(f"spans of more than {LONGEST_TEXT:,} characters, expected a text")
    return "".join(pieces)


def insertions(spans: Iterable[SourceSpan]) -> list[str]:
    """What of some spans is put in, and has a word besides masks."""
    texts = [MASK.sub(" ", span.text) for span in spans if span.text is not None]
    return [text for text in texts if WORD.search(text)]


def repeats(texts: Iterable[str], sources: Iterable[Source]) -> bool:
    """Whether a text has three words in a row that a source has, too."""
    runs = {run for text in texts for run in _runs_of_words(text)}
    return bool(runs) and any(not runs.isdisjoint(_runs_of_words(one.text)) for one in sources)


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _placed(text: str, sources: Sequence[Source]) -> Iterator[tuple[int, int, SourceSpan]]:
    """The spans of a text with their places in it, each with white space as in its source."""
    tokens = list(TOKEN.finditer(text))
    at = 0
    for span in _cut(text, tokens, [source.text for source in sources]):
        if span is None:
            at += 1
            continue
        source = sources[span.text]
        there = islice(TOKEN.finditer(source.text, span.start), span.tokens)
        pairs = list(zip(tokens[at : at + span.tokens], there, strict=True))
        for run in _runs(text, source.text, pairs):
            (first, its_first), (last, its_last) = run[0], run[-1]
            place = (source.post_url, source.field, its_first.start(), its_last.end())
            yield first.start(), last.end(), SourceSpan(*place)
        at += span.tokens


def _runs(text: str, other: str, pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Cuts equal tokens where the white space between them differs."""
    run = [pairs[0]]
    for here, there in pairs[1:]:
        before, its_before = run[-1]
        if text[before.end() : here.start()] != other[its_before.end() : there.start()]:
            yield run
            run = []
        run.append((here, there))
    yield run


def _cut(text: str, tokens: Sequence[re.Match[str]], texts: Sequence[str]) -> Iterator[Span | None]:
    """The longest spans; between them shorter ones, so that what is inserted stands nowhere."""
    single = SpanIndex(texts, shortest=1)
    at, lacking = 0, 0
    for span in [*SpanIndex(texts).spans(text), Span(0, 0, 0)]:
        if span is None:
            lacking += 1
            continue
        if lacking:
            yield from single.spans(text[tokens[at].start() : tokens[at + lacking - 1].end()])
        at, lacking = at + lacking + span.tokens, 0
        if span.tokens:
            yield span


def _words(text: str) -> list[str]:
    return [token for token in TOKEN.findall(text) if WORD.match(token)]


def _runs_of_words(text: str) -> Iterator[tuple[str, ...]]:
    words = _words(text.casefold())
    yield from zip(*(words[first:] for first in range(REPEATED_WORDS)), strict=False)
