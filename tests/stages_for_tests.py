"""Small real stages, an engine that does what its questions say, and invented posts.

They keep the public contracts and stand in for nothing: what is proved with them holds for any
stage and any engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import pyarrow as pa
from datasets import Dataset
from pydantic import BaseModel, ConfigDict, Field

from echo_hf.collect.sources.base import PostNotice, PostReject
from echo_hf.curate.splits import SampleReject
from echo_hf.engines.base import Completion, ImageRef, Message, Request, Text, Usage
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.stage import (
    ModelStage,
    RowIssue,
    Stage,
    StageRows,
    issue_rows,
    keep_rows,
    order_rows,
    parent_lists,
    row_keys,
)
from echo_hf.prompts import Prompt
from echo_hf.tables import POSTS, STRING, STRINGS, Column, Table

ROOT = Path(__file__).resolve().parent.parent
MOST_TOKENS = 16


def url(number: int) -> str:
    return f"https://example.org/{number}"


def posts(*texts: str | None, authors: Sequence[str] = ()) -> Dataset:
    """Posts with these texts, numbered from 0."""
    authors = authors or ["mira_draws"] * len(texts)
    rows = [
        {"url": url(number), "author": author, "text": text}
        for number, (text, author) in enumerate(zip(texts, authors, strict=True))
    ]
    return Dataset(pa.Table.from_pylist(rows, schema=POSTS.features.arrow_schema))


@dataclass(frozen=True)
class Echo(Stage):
    """Keeps posts and adds an ending to their text; a word in it says what else becomes of them."""

    name: ClassVar[str] = "echo"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = POSTS
    outputs: ClassVar[Table] = POSTS

    ending: str = ""
    scratch: str = field(default="", metadata={"digest": False})

    def __call__(self, table: pa.Table) -> pa.Table:
        urls = row_keys(table, POSTS).to_pylist()
        words = [(text or "").split() for text in table["text"].to_pylist()]
        stay = [row for row, said in enumerate(words) if "drop" not in said and "lose" not in said]
        stay = [row for row in stay for _ in range(2 if "twice" in words[row] else 1)]
        dropped = [row for row, said in enumerate(words) if "drop" in said]
        noted = [row for row, said in enumerate(words) if "note" in said]
        gone = [RowIssue([urls[r]], SampleReject.TRASH, words[r][-1]) for r in dropped]
        seen = [RowIssue([urls[row]], PostNotice.BAD_FIELD) for row in noted]
        return order_rows(
            [
                (stay, self._kept(table.take(pa.array(stay, pa.int64())))),
                (dropped, issue_rows(POSTS, gone)),
                (noted, issue_rows(POSTS, seen)),
            ]
        )

    def tally(self, kept: pa.Table) -> Mapping[str, int]:
        return {"texts": kept.num_rows - kept["text"].null_count}

    def _kept(self, table: pa.Table) -> pa.Table:
        texts = [None if t is None else t + self.ending for t in table["text"].to_pylist()]
        columns = table.select(list(POSTS.columns))
        at = columns.schema.get_field_index("text")
        columns = columns.set_column(at, POSTS.schema.field(at), pa.array(texts, pa.string()))
        return keep_rows(columns, parent_lists(row_keys(table, POSTS)))


@dataclass(frozen=True)
class EchoAgain(Echo):
    version: ClassVar[int] = 2


AUTHORS = Table(
    "authors",
    "one author",
    ("author",),
    {
        "author": Column(STRING, "account name"),
        "urls": Column(STRINGS, "addresses of the author's posts, in order"),
    },
)


@dataclass(frozen=True)
class ByAuthor(Stage):
    name: ClassVar[str] = "by_author"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = POSTS
    outputs: ClassVar[Table] = AUTHORS
    whole: ClassVar[bool] = True

    def __call__(self, table: pa.Table) -> pa.Table:
        by: dict[str | None, list[str]] = {}
        authors, urls = table["author"].to_pylist(), table["url"].to_pylist()
        for author, address in zip(authors, urls, strict=True):
            by.setdefault(author, []).append(address)
        nameless = by.pop(None, [])
        parents = pa.array(list(by.values()), pa.list_(pa.string()))
        columns = pa.table([pa.array(list(by), pa.string()), parents], schema=AUTHORS.schema)
        said = [RowIssue(nameless, PostReject.NO_URL)] if nameless else []
        return pa.concat_tables([keep_rows(columns, parents), issue_rows(AUTHORS, said)])


class Color(BaseModel):
    """A colour and a digit."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, Field(max_length=20)]
    number: Annotated[int, Field(ge=0, le=9)]


class Shade(BaseModel):
    """A colour alone."""

    name: Annotated[str, Field(max_length=20)]


GUESSES = Table(
    "guesses",
    "what a model made of one post",
    ("url",),
    {
        "url": Column(STRING, "address of the post"),
        "names": Column(STRINGS, "the colours it named, one for each line of the post"),
    },
)


@dataclass(frozen=True)
class Guess(ModelStage):
    """Asks for a color for each line of a post; a post without lines needs no model."""

    name: ClassVar[str] = "guess"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = POSTS
    outputs: ClassVar[Table] = GUESSES
    answer: ClassVar[type[BaseModel]] = Color

    instructions: str = field(default="Name a colour.", metadata={"digest": False})
    loud: bool = False

    @property
    def prompt(self) -> Prompt:
        return Prompt("guess", self.instructions)

    def requests(self, table: pa.Table) -> list[list[Request]]:
        rows = zip(table["url"].to_pylist(), table["text"].to_pylist(), strict=True)
        return [
            [
                request(line, self.prompt.text, answer=self.answer, sources=(address,))
                for line in (text or "").splitlines()
            ]
            for address, text in rows
        ]

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        rows, urls = StageRows(self.outputs), row_keys(table, POSTS).to_pylist()
        for row, (address, given) in enumerate(zip(urls, answers, strict=True)):
            failed = next((one for one in given if isinstance(one, Failure)), None)
            if failed is None:
                names = [self._name(one) for one in given]
                rows.keep(row, address, {"url": address, "names": names})
            else:
                rows.quarantine(row, address, failed)
        return rows.to_table()

    def _name(self, answer: BaseModel | Failure) -> str:
        name = str(getattr(answer, "name", ""))
        return name.upper() if self.loud else name


@dataclass(frozen=True)
class GuessShade(Guess):
    answer: ClassVar[type[BaseModel]] = Shade


def request(
    line: str,
    instructions: str = "Name a colour.",
    *,
    answer: type[BaseModel] = Color,
    max_tokens: int = MOST_TOKENS,
    images: Sequence[str] = (),
    sources: tuple[str, ...] = (),
    inputs: Mapping[str, Any] | None = None,
) -> Request:
    system = Message("system", (Text(instructions),))
    user = Message("user", (*map(ImageRef, images), Text(line)))
    return Request("guess", (system, user), answer, max_tokens, inputs or {}, sources)


def line_of(asked: Request) -> str:
    part = next(turn for turn in asked.messages if turn.role == "user").parts[-1]
    assert isinstance(part, Text)
    return part.text


class EngineLostError(Exception):
    """What the engine below raises where its question says so."""


@dataclass
class Scripted:
    """Answers with the last word of a question, or fails in the way its first word names.

    It keeps up to `window` questions waiting and answers the latest first. The first words:
    `error`, `once` (an error the first time), `cut` (unless there is twice the usual room),
    `short` (always cut), `refuse`, `prose`, `off` (off schema), `babble` (no JSON), `silent`
    (never reported), `raise`.

    Attributes:
        asked: Every question, in the order it was taken.
        streams: How often `stream` was called.
        in_flight: Number of questions waiting at each answer.
    """

    model: str = "one"
    window: int = 4
    cost_usd: float | None = None
    stored: bool = True
    sees_images: bool | None = None
    asked: list[Request] = field(default_factory=list)
    streams: int = 0
    in_flight: list[int] = field(default_factory=list)

    def signature(self) -> Mapping[str, Any]:
        return {"kind": "scripted", "model": self.model}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        self.streams += 1
        waiting: list[tuple[int, Request]] = []
        for numbered in enumerate(requests):
            self.asked.append(numbered[1])
            waiting.append(numbered)
            if len(waiting) == self.window:
                yield from self._answered(waiting)
        while waiting:
            yield from self._answered(waiting)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def lines(self) -> list[str]:
        return [line_of(asked) for asked in self.asked]

    def _answered(self, waiting: list[tuple[int, Request]]) -> Iterator[tuple[int, Completion]]:
        self.in_flight.append(len(waiting))
        number, asked = waiting.pop()
        if line_of(asked).split()[0] != "silent":
            yield number, self._completion(asked)

    def _completion(self, asked: Request) -> Completion:
        line = line_of(asked)
        first, name = line.split()[0], line.split()[-1]
        answer = json.dumps({"name": name, "number": len(name) % 10})
        usage = Usage(10, 3, 2)
        cut = first == "short" or (first == "cut" and asked.max_tokens < 2 * MOST_TOKENS)
        if first == "raise":
            raise EngineLostError(line)
        if first == "error" or (first == "once" and self.lines().count(line) == 1):
            return Completion(None, f"no power for {name}", "error", usage, self.cost_usd)
        if first == "refuse":
            return Completion("I will not.", None, "refusal", usage, self.cost_usd)
        if cut:
            return Completion(answer[:9], None, "length", usage, self.cost_usd)
        texts = {"prose": f"Sure!\n```json\n{answer}\n```", "off": '{"name": 5}', "babble": "Hm."}
        return Completion(texts.get(first, answer), usage=usage, cost_usd=self.cost_usd)
