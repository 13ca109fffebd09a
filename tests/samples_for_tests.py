"""Invented samples in context, and an engine that says whatever a test gives it to say."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa
from datasets import Dataset
from hypothesis import strategies as st

from echo_hf.config.sections import Target
from echo_hf.engines.base import Completion, Request
from echo_hf.samples.sample import SAMPLES_IN_CONTEXT

TARGET = Target(name="Lumen Image", developer="Northlight", released="2026-03-02")
# A config that says no more than it must.
CONFIG_DATA = {
    "name": "lumen",
    "target": {"name": "Lumen Image", "developer": "Northlight", "released": "2026-03-02"},
    "posts": [{"source": "quickstart"}],
    "engines": {"main": {"kind": "rules"}},
}
TEMPLATE = "a [PET] in the [PLACE], oil paint"
NAMES = "abcdefgh"

Row = dict[str, Any]


def url(number: int) -> str:
    return f"https://x.com/i/status/{1000 + number}"


def digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def image(name: str | None, alt_text: str | None = None) -> Row:
    """An image of a post; one without a name was never fetched."""
    shown = {"url": None, "alt_text": alt_text, "same_picture_of": None}
    return {"sha256": name and digest(name), **shown}


def post(
    number: int, parent: int, text: str | None, images: str = "", author: str | None = "ana"
) -> Row:
    plain = {"url": url(number), "parent": parent, "author": author, "text": text, "missing": None}
    return {**plain, "pictures": [image(name) for name in images]}


def sample(
    context: Sequence[Row], own: Sequence[int] = (0,), feedback: Sequence[int] = (), **values: Any
) -> Row:
    shown = [one["sha256"] for n in own for one in context[n]["pictures"] if one["sha256"]]
    plain = {
        "id": "sample",
        "post_urls": [context[number]["url"] for number in own],
        "target": TARGET.name,
        "prompt": "a fox in the snow",
        "prompt_modified": False,
        "prompt_fill_blank": False,
        "quality": "Benchmark",
        "community_feedback": [said(context[number]) for number in feedback],
        "input_images": [],
        "output_images": list(dict.fromkeys(shown)),
        "screenshot": None,
        "is_screenshot": False,
        "input_bboxs": [],
        "output_bboxs": [],
        "review": [],
        "doubts": [],
        "sample_digest": "as extracted",
        "provenance": json.dumps({"extract": {"digest": "d"}}),
        "context": list(context),
    }
    return {**dict.fromkeys(SAMPLES_IN_CONTEXT.columns), **plain, **values}


def said(of: Row) -> Row:
    plain = dict.fromkeys(("author", "sha256", "spans", "verdict", "keyword"))
    url, said = of["url"], of["text"] or "hm"
    return {**plain, "post_id": url.rpartition("/")[2], "post_url": url, "feedback": said}


def table(*samples: Row) -> pa.Table:
    return pa.Table.from_pylist(list(samples), schema=SAMPLES_IN_CONTEXT.schema)


def dataset(*samples: Row) -> Dataset:
    schema = SAMPLES_IN_CONTEXT.features.arrow_schema
    return Dataset(pa.Table.from_pylist(list(samples), schema=schema))


def kept(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["_status"] == "kept"]


def noted(rows: Iterable[Row]) -> list[tuple[str, str | None]]:
    return [(row["_reason"], row["_detail"]) for row in rows if row["_status"] == "noted"]


@dataclass
class Speaking:
    """An engine that answers with what a function makes of a request; null is a call that failed.

    Attributes:
        says: The answer to a request, as plain data; a text is one as it is where the request
            declares no shape.
        stored: Whether its answers are kept.
        asked: Every request it was given.
    """

    says: Callable[[Request], Any]
    stored: bool = True
    asked: list[Request] = field(default_factory=list)

    def signature(self) -> Mapping[str, Any]:
        return {"kind": "speaking"}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        self.asked += (waiting := list(requests))
        for number, request in reversed([*enumerate(waiting)]):
            answer = self.says(request)
            yield (
                number,
                Completion(None, error="no power", finish_reason="error")
                if answer is None
                else Completion(self._written(request, answer)),
            )

    def _written(self, request: Request, answer: Any) -> str:
        bare = request.answer is None and isinstance(answer, str)
        return answer if bare else json.dumps(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@st.composite
def samples(draw: st.DrawFn, name: str = "sample") -> Row:
    """Any sample: posts by several authors, with and without images, text and feedback.

    Some images were never fetched, some are shown twice, some belong to another sample.
    """
    count = draw(st.integers(1, 7))
    context = [
        post(
            number,
            draw(st.integers(-1 if number == 0 else 0, number - 1)),
            draw(st.sampled_from([None, "wow", "mine is a cat", "x" * 5000])),
            author=draw(st.sampled_from(["ana", "bo", None])),
        )
        for number in range(count)
    ]
    for one in context:
        some = draw(st.lists(st.sampled_from([None, *NAMES]), max_size=4, unique=True))
        one["pictures"] = [image(name and name, "a cat" if name == "a" else None) for name in some]
    numbers = st.sampled_from(range(count))
    own = draw(st.lists(numbers, min_size=1, unique=True))
    made = sample(context, own, draw(st.lists(numbers, unique=True)), id=name)
    others = draw(st.sets(st.sampled_from(NAMES), max_size=2))
    made["output_images"] = [
        one for one in made["output_images"] if one not in {digest(name) for name in others}
    ]
    made["prompt"] = draw(st.sampled_from([TEMPLATE, "a fox in the snow", "[PET]"]))
    made["quality"] = draw(st.sampled_from(["Benchmark", "Benchmark", "Analysis", "Trash"]))
    return made


NUMBER = st.integers(0, 10)
BLANK = st.fixed_dictionaries(
    {
        "placeholder": st.sampled_from(["[PET]", "[PLACE]", "[NOWHERE]", "fox"]),
        "value": st.sampled_from(["cat", "dog", "sea", "  ", "[PET]"]),
    }
)
ROLES_SAMPLE = st.fixed_dictionaries(
    {
        "inputs": st.lists(NUMBER, max_size=4),
        "outputs": st.lists(NUMBER, max_size=4),
        "posts": st.lists(NUMBER, max_size=4),
        "prompt_fill_blank": st.lists(BLANK, max_size=3),
        "conversation": st.none() | NUMBER,
        "collage": st.none() | st.none() | NUMBER,
        "may_show_minor": st.none() | st.booleans(),
    }
)
ROLES_SAMPLES = st.lists(ROLES_SAMPLE, max_size=5)
