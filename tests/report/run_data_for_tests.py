"""A small run as a report reads it, which a test states itself; and one of harmful words."""

from __future__ import annotations

import datetime
import io
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pyarrow as pa
from PIL import Image
from pydantic import BaseModel

from echo_hf.config.sections import Target
from echo_hf.images.store import ImageStore
from echo_hf.judging.results import SavedResults
from echo_hf.judging.score import score_win_rates
from echo_hf.judging.trust import Trust, collect_trust_lines
from echo_hf.report.analysis.result import Analysis
from echo_hf.report.run_data import ReportSample, RunData, SavedOutput, SavedRating
from echo_hf.scores.rating_table import read_ratings
from echo_hf.systems.run_tables import Models

TARGET = Target(name="Lumen Image", developer="Northlight", released="2026-03-02")
SYSTEMS = ("anole_two", "bravo")
MARK = "window.harmed=true"
WORDS = (
    f"<script>{MARK}</script>",
    f"</script><script>{MARK}</script>",
    f'"><img src=x onerror="{MARK}">',
    f"<svg onload={MARK}>",
    f"javascript:{MARK}",
    f"<a href='javascript:{MARK}'>click</a>",
    "<!-- --><iframe src='https://example.org/'></iframe>",
    "<link rel=stylesheet href=https://example.org/x.css>",
    "</textarea></title></style></template>",
    "\u202eright to left\u202c \ud800 half \x00 \x1b[31m \u2028 line",
    "{{7*7}} ${alert(1)} `x` \\u003cscript\\u003e",
)
HOSTILE_SYSTEMS = (f"<img src=x onerror={MARK}>", 'b"><script>1</script>')


def image(color: tuple[int, int, int], size: tuple[int, int] = (40, 20)) -> bytes:
    sink = io.BytesIO()
    Image.new("RGB", size, color).save(sink, "PNG")
    return sink.getvalue()


def words(page: object) -> str:
    text = str(page).split("<script", 1)[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


class Parsed(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


def ratings_of(
    values: Mapping[str, Sequence[float | None]], judge: str = "mira"
) -> list[SavedRating]:
    return [
        SavedRating(system, judge, "overall", at, value, f"{system} at {value}", "ok")
        for system, some in values.items()
        for at, value in enumerate(some)
    ]


def measured(**values: Any) -> dict[str, Any]:
    known = {"value": 3.0, "interval": None, "per_sample": [], "n": 0, "coverage": None}
    return {**known, "reasons": [], "definition": {}, **values}


def results(
    samples: Sequence[ReportSample], ratings: Mapping[str, Sequence[SavedRating]], **more: Any
) -> SavedResults:
    """Figures as `score` computes them, without metrics unless they are given."""
    details: dict[str, Any] = {}
    models, trusted = Models(more.pop("systems", {}), more.pop("judges", {})), dict[str, Trust]()
    for split in dict.fromkeys(one.split for one in samples):
        ids = [one.id for one in samples if one.split == split]
        rows = [
            {"sample_id": name, "system": one.system, "judge": one.judge, "rating": one.value}
            for name in ids
            for one in ratings.get(name, ())
        ]
        found = None
        if rows:
            table = read_ratings(pa.Table.from_pylist(rows))
            scored = score_win_rates(split, table, "corrected", 100, {}, models)
            found, trusted[split] = scored.details, scored.trust
        details[split] = {"samples": len(ids), "win_rate": found, "metrics": more.get(split, ())}
    benchmark = {"name": "lumen", "digests": dict.fromkeys(details, "0" * 64)}
    lines = [{**vars(one), "meaning": one.meaning} for one in collect_trust_lines(trusted, {}, {})]
    known = {"benchmark": benchmark, "protocol": "corrected", "details": details, "trust": lines}
    return SavedResults.model_validate({**known, **models._asdict()})


def run_data(
    folder: Path,
    samples: Sequence[ReportSample],
    outputs: Mapping[tuple[str, str], SavedOutput] | None = None,
    ratings: Mapping[str, Sequence[SavedRating]] | None = None,
    **values: Any,
) -> RunData:
    said = {name: tuple(some) for name, some in (ratings or {}).items()}
    known: dict[str, Any] = {
        "name": "invented",
        "title": TARGET.name,
        "target": TARGET,
        "results": results(samples, said),
        "stale": False,
        "agreement": None,
        "failures": {},
        "analysis": None,
        "samples": tuple(samples),
        "outputs": outputs or {},
        "ratings": said,
        "systems": SYSTEMS,
        "images": ImageStore(folder / "pictures"),
        "settings": {},
    }
    return RunData(**{**known, **values})


def hostile_run(folder: Path) -> RunData:
    shown = ImageStore(folder / "pictures").put(image((200, 20, 20)))
    # The second is a name that every object of a script knows.
    judges = (f'<b onclick="{MARK}">judge', "constructor")
    samples = [
        ReportSample(
            # Arrow, which ids pass through, holds no half characters.
            id=f"{at}{text[:24]}".encode("utf-8", "replace").decode(),
            split="image_to_image",
            prompt=text,
            task=text,
            inputs=(shown,),
            posted=(shown, text),
            urls=(text, f"https://example.org/{text}", "https://example.org/1"),
            feedback=(dict.fromkeys(("text", "verdict", "keyword"), text),),
            flags=(text,),
        )
        for at, text in enumerate(WORDS)
    ]
    return run_data(
        folder,
        samples,
        {
            (one.id, system): SavedOutput(shown, "ok")
            if at
            else SavedOutput(None, WORDS[1], WORDS[2], WORDS[0])
            for one in samples
            for at, system in enumerate(HOSTILE_SYSTEMS)
        },
        {
            one.id: [
                SavedRating(system, judge, "overall", 0, 3.0 + at, WORDS[at], "ok")
                for at, system in enumerate(HOSTILE_SYSTEMS)
                for judge in judges
            ]
            for one in samples
        },
        name=WORDS[4],
        systems=HOSTILE_SYSTEMS,
        failures={judges[0]: (WORDS[0],)},
        settings={"note": WORDS[1]},
    )


# An analysis of which every text is one word, but for what a test states itself.
MISSING = {"reason": "not_configured", "detail": "name a language model: analysis.perplexity"}
FOUND = {
    name: one.annotation.model_fields["found"].annotation
    for name, one in Analysis.model_fields.items()
    if isinstance(one.annotation, type) and "found" in getattr(one.annotation, "model_fields", ())
}
PLAIN = {int: 3, float: 0.5, bool: True, datetime.date: "2026-03-04"}


def analysis(**parts: Any) -> Analysis:
    about = {"name": "invented", "toolkit": "0.1.0", "source": {}, "samples": 40, "sets": []}
    every = {name: {"found": found} for name, found in parts.items()}
    return Analysis.model_validate({**about, **dict.fromkeys(FOUND, MISSING), **every})


def every_part(word: str) -> dict[str, Any]:
    return {name: filled(kind, word) for name, kind in FOUND.items()}


def filled(kind: Any, word: str) -> Any:
    """One of everything that a type holds; of what may be another type, the first."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType, Annotated):
        return filled(inside[0], word)
    if origin is Literal:
        return inside[0]
    if origin is tuple:
        return [filled(one, word) for one in inside if one is not ...]
    if origin is Mapping:
        return {filled(inside[0], word): filled(inside[1], word)}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields.items()
        found = {name: filled(one.annotation, word) for name, one in fields}
        return found | ({"post_url": f"https://example.org/{word}"} if "post_url" in found else {})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return None
    return PLAIN.get(kind, word)
