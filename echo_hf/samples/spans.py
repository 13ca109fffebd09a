"""Find a prompt in the text it was taken from, and describe texts as places in posts."""

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

# A word, or one character of a script without spaces, or one punctuation mark.
TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u9fff\uac00-\ud7af]+|[^\w\s]"
)
MIN_SPAN_TOKENS = 3
MAX_SPANS = 8
MAX_PLACES = 256  # of one run in the texts: keeps a text that repeats a word cheap
TokenPosition = tuple[int, int]
MAX_TEXT = 1_000_000
MAX_INSERTED_WORDS = 8  # of one insertion
MAX_INSERTED_CHARACTERS = 80  # of one insertion, with single spaces
MAX_INSERTED_SHARE = 1 / 3  # of a text's words
WORD = re.compile(r"\w")
REPEATED_WORDS = 3  # in a row: fewer are found in many posts by chance
MASK = re.compile(r"\[[a-z-]{1,16}\]")  # reveals nothing of the masked words
TokenPair = tuple[re.Match[str], re.Match[str]]
SourceKey = tuple[str | None, str | None]
FIELD_TYPES = {"post_url": str, "field": str, "start": int, "end": int, "text": str}


class TokenRun(NamedTuple):
    """A run of tokens that a prompt shares with a text."""

    tokens: int
    text: int
    start: int


@dataclass
class SpanIndex:
    texts: Sequence[str]
    min_tokens: int = MIN_SPAN_TOKENS

    @cached_property
    def _text_tokens(self) -> list[tuple[list[str], list[int]]]:
        texts = [list(TOKEN.finditer(text)) for text in self.texts]
        return [([token[0] for token in text], [token.start() for token in text]) for text in texts]

    def split_prompt(self, prompt: str) -> list[TokenRun | None]:
        """Split a prompt into the longest runs, greedily from its start; null for a lone token."""
        tokens, at = TOKEN.findall(prompt), 0
        places_of: dict[tuple[str, ...], list[TokenPosition]]
        places_of = {gram: [] for gram in self._iterate_grams(tokens)}
        for number, (text_tokens, _) in enumerate(self._text_tokens):
            for place, gram in enumerate(self._iterate_grams(text_tokens)):
                if gram in places_of and len(places_of[gram]) < MAX_PLACES:
                    places_of[gram].append((number, place))
        runs: list[TokenRun | None] = []
        while at < len(tokens):
            length = self.min_tokens
            places = places_of.get(tuple(tokens[at : at + length]), [])
            # Lengthen the run as long as one of its places goes on like the prompt.
            while places and at + length < len(tokens):
                token = tokens[at + length]
                longer = [place for place in places if self._matches_at(place, length, token)]
                if not longer:
                    break
                places, length = longer, length + 1
            if places:
                number, start = places[0]
                runs.append(TokenRun(length, number, self._text_tokens[number][1][start]))
            else:
                runs.append(None)
            at += length if places else 1
        return runs

    def contains(self, prompt: str) -> bool:
        """Return whether a prompt is made of runs of the texts."""
        if not prompt.split():
            return False
        if any(squeeze(prompt) in squeeze(text) for text in self.texts):
            return True
        runs = self.split_prompt(prompt)
        return len(runs) <= MAX_SPANS and all(runs)

    def _matches_at(self, place: TokenPosition, offset: int, token: str) -> bool:
        tokens, at = self._text_tokens[place[0]][0], place[1] + offset
        return at < len(tokens) and tokens[at] == token

    def _iterate_grams(self, tokens: Sequence[str]) -> Iterator[tuple[str, ...]]:
        return zip(*(tokens[start:] for start in range(self.min_tokens)), strict=False)


def find_span_start(prompt: str, text: str) -> int:
    """Return where a prompt's longest run stands in the text of its post; -1 if nowhere."""
    start = text.find(prompt) if prompt else -1
    if start < 0:
        runs = [run for run in SpanIndex([text]).split_prompt(prompt) if run]
        start = max(runs, key=lambda run: run.tokens).start if runs else -1
    return start


def squeeze(text: str) -> str:
    return " ".join(text.split())


class SpanSource(NamedTuple):
    post_url: str | None
    field: str
    text: str


class SourceSpan(NamedTuple):
    """A part of a text: characters of a source, or words that were inserted."""

    post_url: str | None = None
    field: str | None = None
    start: int | None = None
    end: int | None = None
    text: str | None = None


def span_sources(posts: Iterable[Mapping[str, Any]]) -> list[SpanSource]:
    """Return all texts of posts: their words, and the descriptions of their images."""
    sources = []
    for post in posts:
        texts = {"text": post["text"]}
        for number, image in enumerate(post["pictures"] or []):
            texts[f"pictures.{number}.alt_text"] = image["alt_text"]
        sources += [SpanSource(post["url"], field, text) for field, text in texts.items() if text]
    return sources


def parse_spans(rows: Iterable[Any]) -> list[SourceSpan]:
    """Parse spans from a table or JSON, which anybody may have written."""
    spans = []
    for row in rows:
        fits = isinstance(row, Mapping) and set(row) == set(FIELD_TYPES)
        for name, kind in FIELD_TYPES.items():
            fits = fits and type(row[name]) in (kind, NoneType)
        if not fits:
            raise SpanError(f"{str(row)[:80]!r} is not a span, expected {', '.join(FIELD_TYPES)}")
        spans.append(SourceSpan(**row))
    return spans


def find_spans(text: str, sources: Sequence[SpanSource]) -> tuple[SourceSpan, ...] | None:
    """Split a text into places of the sources, with few words in between; null if it cannot be."""
    if len(text) > MAX_TEXT:
        return None
    for source in sources:
        if text and (start := source.text.find(text)) >= 0:
            return (SourceSpan(*source[:2], start, start + len(text)),)
    spans: list[SourceSpan] = []  # text between spans becomes an insertion
    at = 0
    for start, end, span in _place_spans(text, sources):
        if start > at:
            spans.append(SourceSpan(text=text[at:start]))
        spans.append(span)
        at = end
    if at < len(text):
        spans.append(SourceSpan(text=text[at:]))
    inserted_texts = [MASK.sub(" ", span.text) for span in spans if span.text is not None]
    words = [len(_list_words(inserted)) for inserted in inserted_texts]
    sizes = [len(squeeze(inserted)) for inserted in inserted_texts]
    is_publishable = (
        max(words, default=0) <= MAX_INSERTED_WORDS
        and max(sizes, default=0) <= MAX_INSERTED_CHARACTERS
        and sum(words) <= MAX_INSERTED_SHARE * len(_list_words(MASK.sub(" ", text)))
    )
    return tuple(spans) if is_publishable else None


def join_spans(spans: Iterable[SourceSpan], sources: Iterable[SpanSource]) -> str:
    """Put a text together again from its spans."""
    texts: dict[tuple[str | None, str | None], str] = {}
    texts.update({(source.post_url, source.field): source.text for source in sources})
    pieces, length = list[str](), 0
    for span in spans:
        source_text = texts.get((span.post_url, span.field), "")
        start, end = -1 if span.start is None else span.start, span.end or 0
        if span.text is not None and span[:4] == (None,) * 4:
            piece = span.text
        elif span.text is None and 0 <= start < end <= len(source_text):
            piece = source_text[start:end]
        else:
            span_fields = tuple(span._replace(text=span.text and span.text[:40]))
            raise SpanError(f"span {str(span_fields)[:200]} is not a place in a text of the posts")
        pieces.append(piece)
        length += len(piece)
        if length > MAX_TEXT:
            raise SpanError(f"spans of more than {MAX_TEXT:,} characters, expected a text")
    return "".join(pieces)


def list_insertions(spans: Iterable[SourceSpan]) -> list[str]:
    """Return the inserted texts that have a word besides masks."""
    texts = [MASK.sub(" ", span.text) for span in spans if span.text is not None]
    return [text for text in texts if WORD.search(text)]


def repeats_source(texts: Iterable[str], sources: Iterable[SpanSource]) -> bool:
    """Return whether a text has three words in a row that a source has, too."""
    runs = {run for text in texts for run in _iterate_word_runs(text)}
    # Most texts have no runs, and the sources need not be read.
    return bool(runs) and any(
        not runs.isdisjoint(_iterate_word_runs(source.text)) for source in sources
    )


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _place_spans(text: str, sources: Sequence[SpanSource]) -> Iterator[tuple[int, int, SourceSpan]]:
    """Yield the spans of a text with their places in it; white space is as in the source."""
    tokens, at = list(TOKEN.finditer(text)), 0
    for span in _cut_spans(text, tokens, [source.text for source in sources]):
        if span is None:
            at += 1
            continue
        source = sources[span.text]
        source_tokens = islice(TOKEN.finditer(source.text, span.start), span.tokens)
        pairs = list(zip(tokens[at : at + span.tokens], source_tokens, strict=True))
        for run in _split_runs(text, source.text, pairs):
            (first, source_first), (last, source_last) = run[0], run[-1]
            place = (source.post_url, source.field, source_first.start(), source_last.end())
            yield first.start(), last.end(), SourceSpan(*place)
        at += span.tokens


def _split_runs(
    text: str, source_text: str, pairs: Sequence[TokenPair]
) -> Iterator[list[TokenPair]]:
    """Split equal tokens where the white space between them differs."""
    run = [pairs[0]]
    for token, source_token in pairs[1:]:
        previous, source = run[-1]
        if text[previous.end() : token.start()] != source_text[source.end() : source_token.start()]:
            yield run
            run = []
        run.append((token, source_token))
    yield run


def _cut_spans(
    text: str, tokens: Sequence[re.Match[str]], texts: Sequence[str]
) -> Iterator[TokenRun | None]:
    """Yield the longest runs, and shorter ones between, so that no insertion is in a source."""
    single = SpanIndex(texts, min_tokens=1)
    at, unmatched = 0, 0
    for span in [*SpanIndex(texts).split_prompt(text), TokenRun(0, 0, 0)]:
        if span is None:
            unmatched += 1
            continue
        if unmatched:
            part = text[tokens[at].start() : tokens[at + unmatched - 1].end()]
            yield from single.split_prompt(part)
        at, unmatched = at + unmatched + span.tokens, 0
        if span.tokens:
            yield span


def _list_words(text: str) -> list[str]:
    return [token for token in TOKEN.findall(text) if WORD.match(token)]


def _iterate_word_runs(text: str) -> Iterator[tuple[str, ...]]:
    words = _list_words(text.casefold())
    yield from zip(*(words[start:] for start in range(REPEATED_WORDS)), strict=False)
