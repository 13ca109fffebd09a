"""Batches of requests: files that a provider answers within a day, in the form of OpenAI's API.

A row's id is the digest of what it asks, so that it is known again by whoever asks the same. What
marks a batch as ours stands in its metadata, and open batches are listed before one is sent: a run
that was killed waits for what it had sent, and pays for nothing twice. What a batch holds is read
from its input file, or where that cannot be read, from its answers.
"""

from __future__ import annotations

import json
import logging
import re
import shlex
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from hashlib import sha256
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from echo_hf._infra.atomic import replace_file
from echo_hf._infra.http_errors import (
    OK,
    ApiError,
    HttpResponse,
    JsonObject,
    as_mapping,
    get_response,
    is_transient,
    read_api_error,
)
from echo_hf._infra.regular_file import open_regular
from echo_hf._infra.retry import RequestError, RetryPolicy
from echo_hf._infra.text import clean, pluralize
from echo_hf.engines.prices import parse_count
from echo_hf.engines.server import ApiKey, make_client_options
from echo_hf.errors import EngineError

logger = logging.getLogger(__name__)

MARKER = "echo_hf"  # the key of a batch's metadata that holds our id
FILE_PREFIX = "echo-hf-"
ID_CHARACTERS = 40
PAGE_ROWS = 100
MAX_PAGES = 1000
# Providers keep files for a month: what is older holds no answers.
MAX_AGE_SECONDS = 31 * 86400.0
MAX_ORPHAN_SECONDS = 3600.0  # a file without a batch is of a run that was killed
MAX_UNREAD_SECONDS = 7 * 86400.0
MAX_OPEN_BATCHES = 20
MAX_WAITING_ROWS = 100_000
MAX_LINE_BYTES = 128 << 20  # room for an image
MAX_ANSWER_BYTES = 4 << 30
CHUNK_BYTES = 1 << 16
FIRST_POLL_SECONDS = 1.0
LOOKS_FOR_FILES = 5  # a batch may be completed a little before its files are there
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
QUEUE_FULL = "token_limit_exceeded"
NOT_RUN = frozenset({"batch_expired", "batch_cancelled"})
MAX_REASON_CHARACTERS = 300
OBJECT_ID = re.compile(r"[\w.:-]{1,200}", re.ASCII)
ROW_ID = re.compile(rb'\s*\{\s*"custom_id"\s*:\s*"([0-9a-f]{%d})"' % ID_CHARACTERS)
MEGABYTE = 1_000_000
REQUESTS, ANSWERS = "requests", "answers"  # how files in a folder begin


class BatchOptions(BaseModel):
    """How requests go as files; `batch: true` stands for the defaults.

    Attributes:
        folder: Folder for files that you answer yourself, as with `vllm run-batch`; null sends them
            to the server.
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


@dataclass
class Batch:
    """A batch as the provider describes it, and what this run knows of it."""

    id: str
    status: str
    input_file: str | None
    output_files: tuple[str, ...] = ()
    marker: str | None = None
    created_at: float | None = None
    counts: str = ""
    reason: str = ""
    code: str = ""
    url: str = ""
    rows: frozenset[str] | None = None
    places: dict[str, Place] | None = None  # of its answers, once they are here
    is_adopted: bool = False  # an earlier run sent it
    was_ended: bool = False  # when that was seen
    is_used: bool = False
    since: float = field(default_factory=time.monotonic)

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED

    def update(self, other: Batch) -> None:
        """Take over what the provider says now."""
        if (other.status, other.counts) != (self.status, self.counts):
            logger.info("batch %s: %s%s", self.id, other.status, other.counts)
        self.status, self.counts, self.code = other.status, other.counts, other.code
        self.output_files, self.reason = other.output_files, other.reason


def parse_batch(document: Any) -> Batch:
    """Read a batch; raises where it has no id, and takes an unknown status for an open one."""
    document = as_mapping(document)
    counts = as_mapping(document.get("request_counts"))
    done, total = parse_count(counts.get("completed")), parse_count(counts.get("total"))
    errors = as_mapping(document.get("errors")).get("data")
    error = as_mapping(errors[0] if isinstance(errors, list) and errors else None)
    created, marker = document.get("created_at"), as_mapping(document.get("metadata")).get(MARKER)
    files = (_parse_id(document.get(f"{name}_file_id")) for name in ("output", "error"))
    batch_id = _parse_id(document.get("id"))
    if batch_id is None:
        raise RequestError("the answer of the batch API is no batch: it has no id")
    return Batch(
        batch_id,
        clean(str(document.get("status")), 30).lower(),
        _parse_id(document.get("input_file_id")),
        tuple(name for name in files if name),
        marker if isinstance(marker, str) else None,
        float(created) if isinstance(created, int | float) else None,
        f", {done:,} of {total:,} requests" if total and done is not None else "",
        clean(str(error.get("message") or ""), MAX_REASON_CHARACTERS),
        str(error.get("code")),
        clean(str(document.get("endpoint") or ""), 100),
    )


def _parse_id(value: Any) -> str | None:
    return value if isinstance(value, str) and OBJECT_ID.fullmatch(value) else None


class BatchApi:
    """The files and batches of a server, each call tried again where its failure may pass.

    Args:
        client: A client of the `openai` package that does not try again by itself.
        headers: Headers of every call.
        base_url: Address of the server, for errors.
        timeout_s: Longest wait for an answer.
        retries: How often to try.
        advise: Returns what to do about an error that every request would meet, null for others.
    """

    def __init__(
        self,
        client: Any,
        headers: Mapping[str, Any] | None,
        base_url: str,
        timeout_s: float,
        retries: RetryPolicy,
        advise: Callable[[ApiError], str | None],
    ) -> None:
        self._client, self._headers = client, headers
        self.base_url, self._timeout_s = base_url, timeout_s
        self.retries, self._advise = retries, advise

    def upload(self, name: str, file: IO[bytes]) -> str:
        """Upload a file of rows, and return its id."""

        def attempt() -> str:
            file.seek(0)
            create = self._client.files.with_raw_response.create
            document = self._read(create, file=(name, file), purpose="batch")
            if (file_id := _parse_id(document.get("id"))) is None:
                raise RequestError("the answer to an upload has no id of a file")
            return file_id

        return self.retries.call(attempt)

    def create(self, input_file: str, url: str, marker: str, rows: int) -> Batch:
        """Make a batch of a file, once: where no answer came, it may have been made before."""
        create, is_unsure = self._client.batches.with_raw_response.create, False
        metadata = {MARKER: marker, "rows": str(rows)}
        options = {"endpoint": url, "completion_window": "24h", "metadata": metadata}

        def attempt() -> Batch:
            nonlocal is_unsure
            for batch in self.list_batches() if is_unsure else ():
                if batch.input_file == input_file and batch.status != "failed":
                    return batch
            is_unsure = True
            return parse_batch(self._read(create, input_file_id=input_file, **options))

        return self.retries.call(attempt)

    def look(self, batch_id: str) -> Batch:
        retrieve = self._client.batches.with_raw_response.retrieve
        return self.retries.call(lambda: parse_batch(self._read(retrieve, batch_id)))

    def list_batches(self) -> Iterator[Batch]:
        """Yield the batches of the account that may still have files, whoever made them."""
        for document in self._iterate(self._client.batches.with_raw_response.list, PAGE_ROWS):
            if _parse_id(document.get("id")):
                yield parse_batch(document)

    def list_files(self, prefix: str) -> dict[str, float | None]:
        """Return when each file was uploaded whose name begins so; nothing where none is listed."""
        files = dict[str, float | None]()
        try:
            list_page = self._client.files.with_raw_response.list
            for document in self._iterate(list_page, 10 * PAGE_ROWS, purpose="batch"):
                file_id, created = _parse_id(document.get("id")), document.get("created_at")
                if file_id and str(document.get("filename")).startswith(prefix):
                    files[file_id] = float(created) if isinstance(created, int | float) else None
        except (EngineError, RequestError) as error:
            logger.info("no list of files at %r: %s", self.base_url, error)
        return files

    def has_file(self, file_id: str) -> bool:
        retrieve = self._client.files.with_raw_response.retrieve
        try:
            self.retries.call(lambda: self._read(retrieve, file_id))
        except MissingError:
            return False
        return True

    def download(self, file_id: str, target: IO[bytes], limit: int = MAX_ANSWER_BYTES) -> None:
        """Append a file's bytes to another one, as many as the limit at most."""
        start = target.seek(0, 2)

        def attempt() -> None:
            target.seek(start)
            target.truncate()
            content = self._client.files.with_streaming_response.content
            try:
                with content(file_id, extra_headers=self._headers) as response:
                    for chunk in response.iter_bytes(CHUNK_BYTES):
                        if target.tell() - start + len(chunk) > limit:
                            raise EngineError(
                                f"file {file_id!r} at {self.base_url!r} has more than {limit:,} "
                                "bytes: expected no more than the answers to our own requests"
                            )
                        target.write(chunk)
            except EngineError:
                raise
            except Exception as error:
                reply = get_response(error, self.base_url, self._timeout_s)
                raise self._explain(reply) from None

        self.retries.call(attempt)

    def delete_files(self, file_ids: Iterable[str]) -> None:
        """Delete files at the provider; what stays there is reported, and stops nothing."""
        for file_id in file_ids:
            delete = self._client.files.with_raw_response.delete
            try:
                self.retries.call(partial(self._read, delete, file_id))
            except (EngineError, RequestError) as error:
                logger.warning(
                    "file %s stays at %r, because deleting it failed: delete it there (%s)",
                    file_id,
                    self.base_url,
                    clean(str(error), MAX_REASON_CHARACTERS),
                )

    def _iterate(self, list_page: Any, limit: int, **options: Any) -> Iterator[JsonObject]:
        cursors, oldest = list[str](), time.time() - MAX_AGE_SECONDS
        for _ in range(MAX_PAGES):
            after = {"after": cursors[-1]} if cursors else {}
            call = partial(self._read, list_page, limit=limit, **after, **options)
            page = self.retries.call(call)
            data = page.get("data")
            documents = list(map(as_mapping, data if isinstance(data, list) else []))
            dates = [document.get("created_at") for document in documents]
            for document, date in zip(documents, dates, strict=True):
                if not isinstance(date, int | float) or date >= oldest:
                    yield document
            last = _parse_id(documents[-1].get("id")) if documents else None
            all_old = all(isinstance(date, int | float) and date < oldest for date in dates)
            if page.get("has_more") is not True or last is None or last in cursors or all_old:
                return
            cursors.append(last)

    def _read(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> JsonObject:
        from openai import APIConnectionError, APIStatusError

        try:
            raw = call(*arguments, **options, extra_headers=self._headers)
            reply = HttpResponse(raw.status_code, raw.headers, raw.text)
        except (APIStatusError, APIConnectionError, TimeoutError) as error:
            reply = get_response(error, self.base_url, self._timeout_s)
        if not OK <= reply.status < 300:
            raise self._explain(reply)
        try:
            return as_mapping(json.loads(reply.text))
        except (ValueError, RecursionError):
            raise RequestError("the answer of the batch API is not a JSON document") from None

    def _explain(self, reply: HttpResponse) -> Exception:
        error = read_api_error(reply)
        if is_transient(error.status):
            return RequestError(error.summary, str(error.status), wait_s=error.wait_s)
        if error.status in (404, 405, 410, 501):
            return MissingError(
                f"{self.base_url!r} answered with status {error.status}, {error.message!r}: "
                "expected a server with files and batches in the form of OpenAI's API; without "
                "`batch` each request is sent by itself"
            )
        advice = self._advise(error) or "fix that, or ask without `batch`"
        return EngineError(f"{self.base_url!r}: {error.summary}: {advice}")


@contextmanager
def open_batch_api(
    base_url: str,
    key: ApiKey,
    timeout_s: float,
    retries: RetryPolicy,
    advise: Callable[[ApiError], str | None],
) -> Iterator[BatchApi]:
    """Open the files and batches of a server, with a client of its own."""
    from openai import DefaultHttpxClient, Omit, OpenAI

    options = make_client_options(base_url, key, timeout_s)
    headers = None if key else {"Authorization": Omit()}
    # A redirect would take the requests to a server that nobody named.
    http = DefaultHttpxClient(follow_redirects=False)
    with OpenAI(**options, http_client=http) as client:
        yield BatchApi(client, headers, base_url, timeout_s, retries, advise)


class MissingError(EngineError):
    """The server does not have what was asked for: a file, a batch, or the whole API."""


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
        if as_mapping(error).get("code") in NOT_RUN or (not error and body is None):
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


class BatchAsking:
    """Asks rows in batches, and takes over what earlier runs sent.

    Args:
        api: The provider.
        options: Limits of a batch and of the wait.
        scope: All that decides an answer, as the engine's signature.
        finished: Ids of batches that this process has read; it is added to.
    """

    def __init__(
        self, api: BatchApi, options: BatchOptions, scope: Mapping[str, Any], finished: set[str]
    ) -> None:
        self.api, self.options, self.finished = api, options, finished
        text = json.dumps(dict(scope), sort_keys=True, default=str)
        self.marker = sha256(text.encode()).hexdigest()[:ID_CHARACTERS]
        self.file_prefix = f"{FILE_PREFIX}{self.marker[:16]}"
        self.refused = Counter[RefusedRow]()
        self._open: list[Batch] = []
        self._adopted: list[Batch] = []
        self._waiting: dict[str, list[int]] = {}  # numbers of rows that a batch holds, by id
        self._holders: dict[str, Batch] = {}  # batches of earlier runs, by row

    def stream(self, rows: Iterator[Row]) -> Iterator[RowAnswer]:
        """Yield the response to each row, or why there is none, as its batch ends."""
        with TemporaryFile() as file:
            self._answers = AnswerRows(file)
            self._adopt()
            while True:
                yield from self._fill(rows)
                if not self._open:
                    break
                for batch in self._poll():
                    yield from self._read_answers(batch)
                    if not batch.is_adopted:
                        self._finish(batch)
            # An answer to a row that was asked late had to stay there until now.
            for batch in self._adopted:
                if batch.is_used or self._is_forgotten(batch):
                    self._finish(batch)
        report_refused(self.refused, self.api.base_url)

    def _finish(self, batch: Batch) -> None:
        self.finished.add(batch.id)
        names = (*batch.output_files, *([batch.input_file] if batch.input_file else []))
        self.api.delete_files(names)  # the input last: what it names was read

    def _is_forgotten(self, batch: Batch) -> bool:
        """Return whether nobody will ask for it: its answers are gone, or a week old."""
        if not batch.was_ended or not batch.rows:
            return False
        if batch.created_at is not None and batch.created_at < time.time() - MAX_UNREAD_SECONDS:
            return True
        return not any(map(self.api.has_file, batch.output_files))

    def _adopt(self) -> None:
        """Find what earlier runs sent: which rows their batches hold."""
        files, used = self.api.list_files(self.file_prefix), set[str]()
        for batch in self.api.list_batches():
            is_ours = batch.marker == self.marker or (
                batch.marker is None and batch.input_file in files
            )
            if not is_ours or batch.id in self.finished or batch.status == "failed":
                continue
            used.update([batch.input_file] if batch.input_file else [])
            batch.is_adopted, batch.was_ended = True, batch.has_ended
            batch.rows = self._read_ids(batch.input_file)
            if batch.rows is None:  # its answers alone tell what was asked
                while not batch.has_ended:
                    self._sleep(batch)
                    self._look(batch)
                batch.rows = frozenset(self._index(batch))
            self._adopted.append(batch)
            # The newest comes first.
            self._holders = dict.fromkeys(batch.rows, batch) | self._holders
        oldest = time.time() - MAX_ORPHAN_SECONDS
        orphans = {name for name, created in files.items() if created and created < oldest}
        self.api.delete_files(sorted(orphans - used))

    def _read_ids(self, input_file: str | None) -> frozenset[str] | None:
        if input_file is None:
            return None
        with TemporaryFile() as file:
            try:
                self.api.download(input_file, file, int(200 * MEGABYTE))
            except (EngineError, RequestError):
                return None
            file.seek(0)
            matches = map(ROW_ID.match, file)
            return frozenset(match[1].decode() for match in matches if match)

    def _fill(self, rows: Iterator[Row]) -> Iterator[RowAnswer]:
        """Send rows until enough are under way; yield what is known of others."""
        limit = int(self.options.max_megabytes * MEGABYTE)
        sent = sum(map(len, self._waiting.values()))
        with ExitStack() as stack:
            files = dict[str, tuple[IO[bytes], list[str]]]()  # by endpoint: a batch has one
            while sent < MAX_WAITING_ROWS and len(self._open) < MAX_OPEN_BATCHES:
                if (row := next(rows, None)) is None:
                    break
                if row.id in self._waiting:
                    self._waiting[row.id].append(row.number)
                elif (response := self._take_earlier(row.id)) is not None:
                    yield row.number, response
                elif (holder := self._holders.get(row.id)) and not holder.has_ended:
                    self._waiting[row.id] = [row.number]
                    self._open += [] if holder in self._open else [holder]
                    holder.is_used = True
                elif len(row.line) > limit:
                    size_mb = len(row.line) / MEGABYTE
                    yield row.number, f"the request has {size_mb:.1f} MB, more than a batch holds"
                else:
                    file, ids = files.get(row.url, (None, []))
                    if file is not None and (
                        file.tell() + len(row.line) > limit or len(ids) == self.options.max_rows
                    ):
                        self._send(row.url, file, ids)
                        file = None
                    if file is None:
                        file, ids = stack.enter_context(TemporaryFile()), []
                        files[row.url] = file, ids
                    file.write(row.line)
                    ids.append(row.id)
                    self._waiting[row.id] = [row.number]
                    sent += 1
            for url, (file, ids) in files.items():
                self._send(url, file, ids)

    def _send(self, url: str, file: IO[bytes], ids: list[str]) -> None:
        input_file = self.api.upload(f"{self.file_prefix}.jsonl", file)
        batch = self.api.create(input_file, url, self.marker, len(ids))
        batch.input_file, batch.rows, batch.url = input_file, frozenset(ids), url
        self._open.append(batch)
        logger.info(
            "batch %s: %s sent to %r; it stays there if this run ends, and the same command goes "
            "on with it",
            batch.id,
            pluralize(len(ids), "request"),
            self.api.base_url,
        )

    def _take_earlier(self, row_id: str) -> HttpResponse | None:
        """Return the answer that a batch of an earlier run had; null where it had none."""
        holder = self._holders.get(row_id)
        if holder is None:
            return None
        places = self._index(holder) if holder.has_ended else {}
        response = self._answers.read(places.pop(row_id, None))
        if response is None or response.status != OK:  # what had failed is asked anew
            return None
        holder.is_used = True
        return response

    def _poll(self) -> list[Batch]:
        """Wait until batches have ended, and take them off the open ones."""
        wait_s = min(FIRST_POLL_SECONDS, self.options.poll_s)
        while True:
            for batch in self._open:
                self._look(batch)
            if ended := [batch for batch in self._open if batch.has_ended]:
                self._open = [batch for batch in self._open if batch not in ended]
                return ended
            for batch in self._open:
                self._check_wait(batch)
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, self.options.poll_s)

    def _look(self, batch: Batch) -> None:
        try:
            batch.update(self.api.look(batch.id))
        except RequestError as error:  # the batch goes on meanwhile
            logger.info("batch %s: %s", batch.id, error)
        if batch.status == "failed" and batch.code == QUEUE_FULL and batch.input_file:
            # It was not begun: its turn comes once others have ended.
            logger.info("batch %s: the provider's queue is full", batch.id)
            self._sleep(batch)
            again = self.api.create(batch.input_file, batch.url, self.marker, len(batch.rows or ()))
            batch.id, batch.status, batch.code = again.id, again.status, ""

    def _sleep(self, batch: Batch) -> None:
        self._check_wait(batch)
        time.sleep(self.options.poll_s)

    def _check_wait(self, batch: Batch) -> None:
        if time.monotonic() - batch.since > self.options.max_wait_hours * 3600:
            raise EngineError(
                f"batch {batch.id!r} at {self.api.base_url!r} is still {batch.status!r} after "
                f"{self.options.max_wait_hours:g} hours: the same command waits on; or cancel it "
                "at the provider, or raise `max_wait_hours`"
            )

    def _read_answers(self, batch: Batch) -> Iterator[RowAnswer]:
        """Yield the answers of a batch that has ended, then what it did not answer."""
        places = self._index(batch)
        for row_id in sorted((batch.rows or frozenset()) & self._waiting.keys()):
            response = self._answers.read(places.pop(row_id, None))
            reason = f"batch failed: {batch.reason or 'no reason is given'}"
            if batch.status != "failed":  # not equal to others: the provider is not dead
                reason = f"batch {batch.id} was {batch.status} without an answer to {row_id[:12]}"
            for number in self._waiting.pop(row_id):
                yield number, response or reason

    def _index(self, batch: Batch) -> dict[str, Place]:
        """Return the places of a batch's answers, from its files; none where those are gone."""
        looks = 0 if batch.was_ended else LOOKS_FOR_FILES
        while batch.places is None:
            with suppress(MissingError):
                if not any(earlier.places for earlier in self._adopted):
                    self._answers.file.truncate(0)
                places, refused = dict[str, Place](), Counter[RefusedRow]()
                for name in batch.output_files:
                    start = self._answers.file.seek(0, 2)
                    self.api.download(name, self._answers.file)
                    refused += self._answers.index(start, batch.rows, places)
                if batch.output_files or batch.status != "completed" or not looks:
                    batch.places = places
                    self.refused += refused
                    break
            if not looks:
                batch.places = {}
            else:
                looks -= 1
                self._sleep(batch)
                self._look(batch)
        return batch.places or {}


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
