"""Find where the words and images of a sample stand in the posts; add or remove quotations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from echo_hf.errors import SpanError
from echo_hf.samples.boxes import get_inner_box
from echo_hf.samples.spans import (
    SourceSpan,
    SpanSource,
    find_spans,
    list_insertions,
    repeats_source,
    span_sources,
    text_digest,
)
from echo_hf.tables import SampleRow

ImageSourceRow = dict[str, Any]
INPUT, OUTPUT, SCREENSHOT = "input", "output", "screenshot"
NO_SOURCE = dict.fromkeys(("sha256", "role", "post_url", "url", "of", "box", "signature"))
# Fields of a stage that hold no posted text: of the toolkit, the config, a guard's codes.
TOOLKIT_FIELDS = frozenset(
    {"digest", "engine", "convention", "replaced_inputs", "looks", "protocol", "mode", "status"}
    | {"reviewer", "at", "changed", "answered_by", "sheet", "single"}
)
QUOTED = "quoted"
LEFT_OUT = "left_out"  # columns of other packages whose words of posts were left out
ValuePath = tuple[str | int, ...]
Spans = Sequence[Mapping[str, Any]]
PROMPT_FIELD = "prompt"


def find_picture_sources(
    sample: SampleRow, posts: Iterable[Mapping[str, Any]]
) -> list[ImageSourceRow]:
    """Return where each image of a sample comes from: a post, or a box in a post's screenshot."""
    posted: dict[str, ImageSourceRow] = {}
    for post in posts:
        for image in post["pictures"] or []:
            posted.setdefault(image["sha256"], {"post_url": post["url"], "url": image["url"]})
    screenshot = sample["screenshot"]
    entries: list[ImageSourceRow] = []
    for role in (INPUT, OUTPUT):
        boxes = sample[f"{role}_bboxs"] or []
        for number, digest in enumerate(sample[f"{role}_images"]):
            source = posted.get(digest, {})
            if number < len(boxes):  # images with boxes come first
                left, top, right, bottom = map(int, boxes[number])
                box = list(get_inner_box((left, top, right, bottom), get_inset(sample)))
                source = {**posted.get(screenshot, {}), "of": screenshot, "box": box}
            entries.append({**NO_SOURCE, "sha256": digest, "role": role, **source})
    if screenshot is not None:
        where = posted.get(screenshot, {})
        entries.append({**NO_SOURCE, "sha256": screenshot, "role": SCREENSHOT, **where})
    return entries


def get_inset(sample: SampleRow) -> int:
    """Return the pixels that were left out along each side of a sample's boxes."""
    provenance = json.loads(sample["provenance"] or "{}")
    return int(provenance.get("screenshots", {}).get("inset", 0))


class Quote(NamedTuple):
    path: ValuePath
    sha256: str
    spans: Spans


def add_quotes(provenance: str | None, locate: Callable[[str], Spans]) -> str | None:
    """Add to a provenance where its quotations come from."""
    data = _parse(provenance)
    quotes = [Quote(path, text_digest(text), locate(text)) for path, text in _find_quotations(data)]
    return (
        _format({**data, QUOTED: [quote._asdict() for quote in quotes]}) if quotes else provenance
    )


def remove_quotes(provenance: str | None) -> str | None:
    data = _parse(provenance)
    quotations = list(_find_quotations(data))
    for path, _ in quotations:
        _put_text(data, path, None)
    return _format(data) if quotations else provenance


def read_quotes(provenance: str | None) -> list[Quote]:
    """Read the quotations of a provenance, which anybody may have written."""
    quote_rows = _parse(provenance).get(QUOTED, [])
    try:
        quotes = [Quote(tuple(row["path"]), row["sha256"], row["spans"]) for row in quote_rows]
        {quote.path: [dict(span) for span in quote.spans] for quote in quotes}
    except (KeyError, TypeError, ValueError):
        raise SpanError(f"{str(quote_rows)[:80]!r} are not quotations of a provenance") from None
    return quotes


def note_left_out(provenance: str | None, columns: Sequence[str]) -> str | None:
    """Add to a provenance the columns of other packages whose words were left out."""
    noted = read_left_out(provenance)
    names = sorted({*noted, *columns})
    return provenance if names == noted else _format({**_parse(provenance), LEFT_OUT: names})


def read_left_out(provenance: str | None) -> list[str]:
    names = _parse(provenance).get(LEFT_OUT, [])
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return names
    raise SpanError(f"{str(names)[:80]!r} is not a list of the columns that were left out")


def add_texts(provenance: str | None, texts: Mapping[ValuePath, str]) -> str | None:
    data = _parse(provenance)
    for path, text in texts.items():
        _put_text(data, path, text)
    return _format(data) if texts else provenance


def _parse(provenance: str | None) -> dict[str, Any]:
    try:
        data = json.loads(provenance or "{}")
        if isinstance(data, dict):
            _list_strings(data)  # checks that it does not nest too deep
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise SpanError(f"provenance {str(provenance)[:80]!r} is not a JSON object a stage")
    return data


def _format(data: Mapping[str, Any]) -> str:
    return json.dumps(data, sort_keys=True)


def _find_quotations(data: Mapping[str, Any]) -> Iterator[tuple[ValuePath, str]]:
    for path, text in _list_strings(data):
        stage = str(path[0])
        is_from_toolkit = isinstance(data[stage], dict) and path[1] in TOOLKIT_FIELDS
        if text and stage not in (QUOTED, LEFT_OUT) and not is_from_toolkit:
            yield path, text


def _list_strings(value: Any, path: ValuePath = ()) -> list[tuple[ValuePath, str]]:
    strings: list[tuple[ValuePath, str]] = []
    for name, child in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(child, str):
            strings.append(((*path, name), child))
        elif isinstance(child, (dict, list)):
            strings += _list_strings(child, (*path, name))
    return strings


def _put_text(data: Any, path: ValuePath, text: str | None) -> None:
    try:
        for name in path[:-1]:
            data = data[name]
        if text is not None and data[path[-1]] is not None:
            raise KeyError(path[-1])
        data[path[-1]] = text
    except (LookupError, TypeError):
        raise SpanError(f"{str(path)[:80]} is not an empty place in a provenance") from None


def add_sources(sample: SampleRow, context: Sequence[SampleRow]) -> dict[str, Any]:
    """Return a sample with all that is needed to take posted content out, and to put it back."""
    own_posts = [post for url in sample["post_urls"] for post in context if post["url"] == url]
    posts = [*own_posts, *(post for post in context if post not in own_posts)]
    own_sources, sources = span_sources(own_posts), span_sources(posts)
    prompt = prompt_source(sample["prompt"])
    sources_of_post: dict[str | None, list[SpanSource]] = {}
    for source in sources:
        sources_of_post.setdefault(source.post_url, []).append(source)
    comments = [
        _add_comment_spans(comment, sources_of_post.get(comment["post_url"], []), sources)
        for comment in sample["community_feedback"]
    ]
    return {
        **sample,
        "prompt_sha256": text_digest(sample["prompt"]),
        "prompt_spans": _find_span_rows(sample["prompt"], own_sources, sources),
        "community_feedback": comments,
        "picture_sources": find_picture_sources(sample, posts),
        "provenance": add_quotes(
            sample["provenance"],
            lambda text: _find_span_rows(text, [prompt, *own_sources], [prompt, *sources]),
        ),
    }


def prompt_source(prompt: str) -> SpanSource:
    """Return the prompt as a source that the provenance may quote from."""
    return SpanSource(None, PROMPT_FIELD, prompt)


def _add_comment_spans(
    comment: Mapping[str, Any], post_sources: Sequence[SpanSource], sources: Sequence[SpanSource]
) -> dict[str, Any]:
    text = comment["feedback"]
    spans = find_spans(text, post_sources)
    return {**comment, "sha256": text_digest(text), "spans": _make_span_rows(spans, sources)}


def _find_span_rows(
    text: str, own_sources: Sequence[SpanSource], sources: Sequence[SpanSource]
) -> list[dict[str, Any]]:
    """Return the spans in the sample's own posts if they are enough, else in all, as table rows."""
    spans = find_spans(text, own_sources)
    if (spans is None or list_insertions(spans)) and len(sources) > len(own_sources):
        spans = find_spans(text, sources) or spans
    return _make_span_rows(spans, sources)


def _make_span_rows(
    spans: Sequence[SourceSpan] | None, sources: Sequence[SpanSource]
) -> list[dict[str, Any]]:
    """Return spans as table rows; none where an insertion would repeat a post."""
    if spans is None or repeats_source(list_insertions(spans), sources):
        return []
    return [span._asdict() for span in spans]
