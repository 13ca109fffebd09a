"""Rows of batches: requests as lines of a file, and the lines that answer them.

A row's id is the digest of what it asks, so that it is known again by whoever asks the same.
"""

from __future__ import annotations

import json
import logging
import shlex
from collections import Counter
from collections.abc import Callable, Container, Iterator
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, Annotated, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from echo_hf._infra.atomic import replace_file
from echo_hf._infra.http_errors import OK, HttpResponse, JsonObject, as_mapping
from echo_hf._infra.regular_file import open_regular
from echo_hf._infra.text import pluralize
from echo_hf.errors import EngineError

logger = logging.getLogger(__name__)

ID_CHARACTERS = 40
MAX_LINE_BYTES = 128 << 20  # room for an image
MAX_ANSWER_BYTES = 4 << 30
CHUNK_BYTES = 1 << 16
NOT_RUN = frozenset({"batch_expired", "batch_cancelled"})
REQUESTS, ANSWERS = "requests", "answers"  # how files in a folder begin


class BatchOptions(BaseModel):
    """How requests go as files; `batch: true` stands for the defaults.

    Attributes:
        folder: Folder for files that you answer yourself, as with `vllm run-batch`, from the
            working directory; null sends them to the server.
        max_rows: Most requests of a batch.
        max_megabytes: Most megabytes of a batch's file.
        max_wait_hours: Longest wait for a batch; it stays at the provider after that.
        poll_s: Longest wait between two looks at a batch, in seconds.
        price_share: What a batch costs of the standard price; null for the price list's share.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    folder: Annotated[str, Field(min_length=1)] | None = None
    max_rows: Annotated[int, Field(ge=1, le=50_000)] = 50_000
    max_megabytes: Annotated[float, Field(gt=0, le=200)] = 100.0
    max_wait_hours: Annotated[float, Field(gt=0, le=720)] = 26.0
    poll_s: Annotated[float, Field(gt=0, le=3600)] = 30.0
    price_share: Annotated[float, Field(ge=0, le=1)] | None = None


def _read_switch(value: object) -> object:
    return {True: {}, False: None}[value] if isinstance(value, bool) else value


Accepted = bool | BatchOptions | None
BatchSwitch = Annotated[
    BatchOptions | None, BeforeValidator(_read_switch, json_schema_input_type=Accepted)
]


class RefusedRow(StrEnum):
    """Why a row of a provider's answers is not read."""

    UNREADABLE = "unreadable"  # no JSON object with an id
    TOO_LONG = "too long"
    UNKNOWN = "unknown"  # nobody asked for it
    TWICE = "twice"


class Row(NamedTuple):
    """A request on its way: the number that the caller knows it by, its id, and its line."""

    number: int
    id: str
    url: str
    line: bytes


def make_row(number: int, url: str, body: JsonObject, repeat: int | str = 0) -> Row:
    """Make the row of a request body; a repetition of an equal one has another id."""
    text = json.dumps([url, body, repeat], sort_keys=True, allow_nan=False)
    row_id = sha256(text.encode()).hexdigest()[:ID_CHARACTERS]
    row = {"custom_id": row_id, "method": "POST", "url": url, "body": body}
    return Row(number, row_id, url, json.dumps(row).encode() + b"\n")


Place = tuple[int, int]  # where a row begins in a file, and its length
RowAnswer = tuple[int, HttpResponse | str]  # a response, or why there is none
AskRows = Callable[[Iterator[Row]], Iterator[RowAnswer]]


class AnswerRows:
    """Rows of answers in a file of their own, each found by its place."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def index(
        self, start: int, known: Container[str] | None, places: dict[str, Place]
    ) -> Counter[RefusedRow]:
        """Add the places of the rows after a position; count those that are not taken."""
        refused, file = Counter[RefusedRow](), self.file
        file.seek(start)
        while line := file.readline(MAX_LINE_BYTES + 1):
            is_long, size = len(line) > MAX_LINE_BYTES, len(line)
            while is_long and line and line[-1:] != b"\n":
                line = file.readline(CHUNK_BYTES)
            row_id = None if is_long else _read_id(line)
            if is_long:
                refused[RefusedRow.TOO_LONG] += 1
            elif row_id is None:
                refused[RefusedRow.UNREADABLE] += bool(line.strip())
            elif known is not None and row_id not in known:
                refused[RefusedRow.UNKNOWN] += 1
            elif row_id in places:
                refused[RefusedRow.TWICE] += 1
            else:
                places[row_id] = start, size
            start = file.tell()
        return refused

    def read(self, place: Place | None) -> HttpResponse | None:
        """Read the response in a row; null where the provider did not come to it."""
        if place is None:
            return None
        self.file.seek(place[0])
        row = as_mapping(json.loads(self.file.read(place[1])))
        response, error = as_mapping(row.get("response")), row.get("error")
        status, body = response.get("status_code"), response.get("body")
        if str(as_mapping(error).get("code")) in NOT_RUN or (not error and body is None):
            return None
        if error and not body:  # vLLM puts its whole answer there
            body = {"error": as_mapping(error).get("error") or error}
            status = status if status and status != OK else 400
        status = status if isinstance(status, int) and 100 <= status < 600 else OK
        return HttpResponse(status, {}, json.dumps(body))


def report_refused(refused: Counter[RefusedRow], place: str) -> None:
    if refused := +refused:
        counts = ", ".join(f"{number:,} {reason}" for reason, number in sorted(refused.items()))
        logger.warning("rows of answers from %r that are not read: %s", place, counts)


def _read_id(line: bytes) -> str | None:
    try:
        row_id = as_mapping(json.loads(line)).get("custom_id")
    except (ValueError, RecursionError):
        return None
    return row_id if isinstance(row_id, str) else None


def ask_in_folder(folder: Path, model: str, rows: Iterator[Row]) -> Iterator[RowAnswer]:
    """Yield the responses that files of a folder hold; write the other rows into one, and stop.

    Raises:
        EngineError: Rows have no answer yet; it says what answers them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile() as file, TemporaryFile() as waiting:
        answers, places, refused = AnswerRows(file), dict[str, Place](), Counter[RefusedRow]()
        for path in sorted(folder.glob(f"{ANSWERS}-*.jsonl")):
            start = file.seek(0, 2)
            with open_regular(path, max_bytes=MAX_ANSWER_BYTES) as source:
                copyfileobj(source, file)
            refused += answers.index(start, None, places)
        report_refused(refused, str(folder))
        ids = list[str]()
        for row in rows:
            if (response := answers.read(places.get(row.id))) is not None:
                yield row.number, response
            else:
                waiting.write(row.line)
                ids.append(row.id)
        if not ids:
            return
        digest = sha256("".join(ids).encode()).hexdigest()[:12]
        requests = folder / f"{REQUESTS}-{digest}.jsonl"
        waiting.seek(0)
        with replace_file(requests) as partial, partial.open("wb") as target:
            copyfileobj(waiting, target)
    names = (str(requests), str(folder / f"{ANSWERS}-{digest}.jsonl"), model)
    source_name, target_name, quoted_model = map(shlex.quote, names)
    raise EngineError(
        f"{pluralize(len(ids), 'request')} wait in {str(requests)!r}: answer them with `vllm "
        f"run-batch -i {source_name} -o {target_name} --model {quoted_model}`, then run the same "
        "command again"
    )
