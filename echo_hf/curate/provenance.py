"""Say where the words and images of a sample stand in the posts, and quote or unquote them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from echo_hf.errors import SpanError
from echo_hf.samples.boxes import inner
from echo_hf.samples.spans import (
    Source,
    SourceSpan,
    insertions,
    repeats,
    sources_of,
    spans_of,
    text_digest,
)

Sample = Mapping[str, Any]
Entry = dict[str, Any]
INPUT, OUTPUT, SCREENSHOT = "input", "output", "screenshot"


NO_SOURCE = dict.fromkeys(("sha256", "role", "post_url", "url", "of", "box", "signature"))
# Of a stage: said by us, by the config, or by a guard in its own codes.
OURS = frozenset(
    {"digest", "engine", "convention", "replaced_inputs", "looks", "protocol", "mode", "status"}
    | {"reviewer", "at", "changed", "answered_by", "sheet", "single"}
)
QUOTED = "quoted"
ValuePath = tuple[str | int, ...]
Spans = Sequence[Mapping[str, Any]]
PROMPT = "prompt"


def picture_sources(sample: Sample, posts: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Where the images of a sample come from: each stands in a post, or is cut from one."""
    shown: dict[str, Entry] = {}
    for post in posts:
        for one in post["pictures"] or []:
            shown.setdefault(one["sha256"], {"post_url": post["url"], "url": one["url"]})
    screenshot = sample["screenshot"]
    entries: list[Entry] = []
    for role in (INPUT, OUTPUT):
        boxes = sample[f"{role}_bboxs"] or []
        for number, digest in enumerate(sample[f"{role}_images"]):
            where = shown.get(digest, {})
            if number < len(boxes):  # what was cut out stands first
                left, top, right, bottom = map(int, boxes[number])
                box = list(inner((left, top, right, bottom), inset_of(sample)))
                where = {**shown.get(screenshot, {}), "of": screenshot, "box": box}
            entries.append({**NO_SOURCE, "sha256": digest, "role": role, **where})
    if screenshot is not None:
        where = shown.get(screenshot, {})
        entries.append({**NO_SOURCE, "sha256": screenshot, "role": SCREENSHOT, **where})
    return entries


def inset_of(sample: Sample) -> int:
    """Pixels that were left out along each side of the boxes of a sample."""
    made = json.loads(sample["provenance"] or "{}")
    return int(made.get("screenshots", {}).get("inset", 0))


class Quote(NamedTuple):
    path: ValuePath
    sha256: str
    spans: Spans


def with_quotes(provenance: str | None, spans_of: Callable[[str], Spans]) -> str | None:
    """Notes where the quotations of a provenance come from."""
    data = _parsed(provenance)
    quotes = [Quote(path, text_digest(text), spans_of(text)) for path, text in _quotations(data)]
    return _text({**data, QUOTED: [one._asdict() for one in quotes]}) if quotes else provenance


def without_quotes(provenance: str | None) -> str | None:
    data = _parsed(provenance)
    quotations = list(_quotations(data))
    for path, _ in quotations:
        _put(data, path, None)
    return _text(data) if quotations else provenance


def quotes_in(provenance: str | None) -> list[Quote]:
    """The noted quotations of a provenance, which may come from anywhere."""
    noted = _parsed(provenance).get(QUOTED, [])
    try:
        quotes = [Quote(tuple(one["path"]), one["sha256"], one["spans"]) for one in noted]
        {quote.path: [dict(span) for span in quote.spans] for quote in quotes}
    except (KeyError, TypeError, ValueError):
        raise SpanError(f"{str(noted)[:80]!r} are not quotations of a provenance") from None
    return quotes


def with_texts(provenance: str | None, texts: Mapping[ValuePath, str]) -> str | None:
    data = _parsed(provenance)
    for path, text in texts.items():
        _put(data, path, text)
    return _text(data) if texts else provenance


def _parsed(provenance: str | None) -> dict[str, Any]:
    try:
        data = json.loads(provenance or "{}")
        if isinstance(data, dict):
            _strings(data)  # that it can be read, however deep it is
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise SpanError(f"provenance {str(provenance)[:80]!r} is not a JSON object a stage")
    return data


def _text(data: Mapping[str, Any]) -> str:
    return json.dumps(data, sort_keys=True)


def _quotations(data: Mapping[str, Any]) -> Iterator[tuple[ValuePath, str]]:
    shown = {
        stage: {name: one for name, one in said.items() if name not in OURS}
        if isinstance(said, dict)
        else said
        for stage, said in data.items()
        if stage != QUOTED
    }
    yield from (one for one in _strings(shown) if one[1])


def _strings(value: Any, path: ValuePath = ()) -> list[tuple[ValuePath, str]]:
    found: list[tuple[ValuePath, str]] = []
    for name, below in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(below, str):
            found.append(((*path, name), below))
        elif isinstance(below, (dict, list)):
            found += _strings(below, (*path, name))
    return found


def _put(data: Any, path: ValuePath, text: str | None) -> None:
    try:
        for name in path[:-1]:
            data = data[name]
        if text is not None and data[path[-1]] is not None:
            raise KeyError(path[-1])
        data[path[-1]] = text
    except (LookupError, TypeError):
        raise SpanError(f"{str(path)[:80]} is not an empty place in a provenance") from None


def with_sources(sample: Sample, context: Sequence[Sample]) -> dict[str, Any]:
    """A sample with all that is needed to take its posted content out, and to put it back."""
    own = [post for url in sample["post_urls"] for post in context if post["url"] == url]
    posts = [*own, *(post for post in context if post not in own)]
    near, every = sources_of(own), sources_of(posts)
    told = prompt_source(sample["prompt"])
    by_post: dict[str | None, list[Source]] = {}
    for source in every:
        by_post.setdefault(source.post_url, []).append(source)
    comments = [
        _feedback(comment, by_post.get(comment["post_url"], []), every)
        for comment in sample["community_feedback"]
    ]
    return {
        **sample,
        "prompt_sha256": text_digest(sample["prompt"]),
        "prompt_spans": _spans(sample["prompt"], near, every),
        "community_feedback": comments,
        "picture_sources": picture_sources(sample, posts),
        "provenance": with_quotes(
            sample["provenance"], lambda text: _spans(text, [told, *near], [told, *every])
        ),
    }


def prompt_source(prompt: str) -> Source:
    """The prompt as a text that the provenance may quote from."""
    return Source(None, PROMPT, prompt)


def _feedback(
    said: Mapping[str, Any], own: Sequence[Source], every: Sequence[Source]
) -> dict[str, Any]:
    text = said["feedback"]
    found = spans_of(text, own)
    return {**said, "sha256": text_digest(text), "spans": _rows(found, every)}


def _spans(text: str, near: Sequence[Source], every: Sequence[Source]) -> list[dict[str, Any]]:
    """The spans in the sample's own posts if these are enough, as a table holds them."""
    found = spans_of(text, near)
    if (found is None or insertions(found)) and len(every) > len(near):
        found = spans_of(text, every) or found
    return _rows(found, every)


def _rows(spans: Sequence[SourceSpan] | None, every: Sequence[Source]) -> list[dict[str, Any]]:
    """The spans as a table holds them; none where what is put in would repeat a post."""
    if spans is None or repeats(insertions(spans), every):
        return []
    return [span._asdict() for span in spans]
