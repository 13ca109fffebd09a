"""Ask about several posts in one request, and give each the part of the answer that is its own.

Posts have numbers of three digits that are drawn anew for each request, so that no post can name
another one's number, and an answer that is one post off has a number that no post has.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import Any, TypeVar

from pydantic import BaseModel

from echo_hf.engines.base import Completion, Failed, Message, Request, Text, Usage
from echo_hf.pipeline.answer_text import RepeatedKeyError, find_answer_value
from echo_hf.prompts import quote_as_data

NUMBERS = range(100, 1000)
ENTRIES, NUMBER = "posts", "number"
MAX_DIGITS = 18
ItemT = TypeVar("ItemT")


def group_by_packing(
    items: Iterable[ItemT], request_of: Callable[[ItemT], Request]
) -> Iterator[list[ItemT]]:
    """Yield items in their order, together where their requests are to be asked in one."""
    for packing, group in groupby(items, key=lambda item: request_of(item).packing):
        while members := list(islice(group, packing.size if packing else 1)):
            yield members


def pack_requests(requests: Sequence[Request]) -> Request:
    """Return the request that asks about all; a single one is asked as it is."""
    first, packing = requests[0], requests[0].packing
    if packing is None:
        return first
    if len(requests) == 1:
        return replace(first, packing=None)
    posts = [
        {NUMBER: number}
        | {name: request.inputs[name] for name in packing.fields if request.inputs[name]}
        for number, request in zip(_draw_numbers(requests), requests, strict=True)
    ]
    return Request(
        first.task,
        (packing.instructions, Message("user", (Text(quote_as_data(ENTRIES, posts)),))),
        packing.answer,
        len(requests) * first.max_tokens,
        sources=tuple(url for request in requests for url in request.sources),
        row=first.row,
    )


def unpack_completion(requests: Sequence[Request], completion: Completion) -> list[Completion]:
    """Return the part of each request in a completion; tokens and price add up to those of all.

    A part never has words of another post: who asks for one post to be forgotten, or reads why
    another failed, meets nothing of its neighbors.
    """
    if len(requests) == 1:
        return [completion]
    count, usage = len(requests), completion.usage
    if completion.is_answer:
        parts = [Completion(text) for text in _split_answer(requests, completion.text or "")]
    elif completion.finish_reason == "length":
        part = Completion(None, f"the answer about {count} posts was cut", "length")
        parts = [part] * count
    else:
        # That all of them were refused says nothing of a single one.
        is_known = completion.error in set(Failed)
        problem = completion.error if is_known else f"a request about {count} posts failed"
        parts = [Completion(None, problem, "error")] * count
    prompts, answers, cached = (
        [total // count + (position < total % count) for position in range(count)]
        for total in (usage.prompt, usage.completion, usage.cached)
    )
    costs: list[float | None] = [None] * count
    if (cost := completion.cost_usd) is not None:
        shares = [cost / count] * (count - 1)
        costs = [*shares, cost - sum(shares)]
    rows = zip(parts, prompts, answers, cached, costs, strict=True)
    return [replace(part, usage=Usage(*tokens), cost_usd=share) for part, *tokens, share in rows]


def _draw_numbers(requests: Sequence[Request]) -> list[int]:
    """Draw the number of each post from all that is asked, so that equal requests stay equal."""
    seed = hashlib.sha256(repr([request.messages[1:] for request in requests]).encode()).digest()
    return random.Random(seed).sample(NUMBERS, len(requests))  # noqa: S311 - drawn again to read the answer


def _split_answer(requests: Sequence[Request], text: str) -> Iterator[str]:
    """Yield the answer of each post, or why it has none, which is no answer either."""
    numbers, entries = _draw_numbers(requests), _read_entries(text, requests[0].answer)
    counts = Counter(number for number, _ in entries)
    strangers = [number for number in counts if number not in numbers]
    answer_of = dict(entries)
    for number in numbers:
        if strangers:  # then some number may have been given to the wrong post
            yield f"an answer has number {strangers[0]}, which no post has"
        elif counts[number] != 1:
            yield f"{counts[number]} answers have number {number}"
        else:
            yield answer_of[number]


def _read_entries(text: str, answer: type[BaseModel] | None) -> list[tuple[int, str]]:
    """Read the number and the declared fields of each entry; none where they cannot be read."""
    names = answer.model_fields if answer is not None else ()
    try:
        document = json.loads(find_answer_value(text) or "null", parse_int=_parse_integer)
        if isinstance(document, dict):
            document = document.get(ENTRIES)
        entries = document if isinstance(document, list) else []
        return [
            (number, _dump({name: entry[name] for name in names if name in entry}))
            for entry in entries
            if isinstance(entry, dict) and type(number := entry.get(NUMBER)) is int
        ]
    except (RepeatedKeyError, ValueError, RecursionError):
        return []


def _dump(value: Any) -> str:
    # Half of a surrogate pair is no text that an answer could be read from.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()


def _parse_integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)
