"""The files and batches of a server with the form of OpenAI's API."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, Any

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
from echo_hf._infra.retry import RequestError, RetryPolicy
from echo_hf._infra.text import clean
from echo_hf.engines.batch_rows import CHUNK_BYTES, MAX_ANSWER_BYTES, Place
from echo_hf.engines.prices import parse_count
from echo_hf.engines.server import ApiKey, make_client_options
from echo_hf.errors import EngineError

logger = logging.getLogger(__name__)

MARKER = "echo_hf"  # the key of a batch's metadata that holds our id
PAGE_ROWS = 100
MAX_PAGES = 1000
# Providers keep files for a month: what is older holds no answers.
MAX_AGE_SECONDS = 31 * 86400.0
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
MAX_REASON_CHARACTERS = 300
OBJECT_ID = re.compile(r"[\w.:-]{1,200}", re.ASCII)


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
        key: The key, which stands in no error; a server without keys is sent none.
        base_url: Address of the server, for errors.
        timeout_s: Longest wait for an answer.
        retries: How often to try.
        advise: Returns what to do about an error that every request would meet, null for others.
    """

    def __init__(
        self,
        client: Any,
        key: ApiKey,
        base_url: str,
        timeout_s: float,
        retries: RetryPolicy,
        advise: Callable[[ApiError], str | None],
    ) -> None:
        from openai import Omit

        self._client, self._mask = client, key.mask_in
        self._headers = None if key else {"Authorization": Omit()}
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
        error = replace(error, message=self._mask(error.message))
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
    from openai import DefaultHttpxClient, OpenAI

    options = make_client_options(base_url, key, timeout_s)
    # A redirect would take the requests to a server that nobody named.
    http = DefaultHttpxClient(follow_redirects=False)
    with OpenAI(**options, http_client=http) as client:
        yield BatchApi(client, key, base_url, timeout_s, retries, advise)


class MissingError(EngineError):
    """The server does not have what was asked for: a file, a batch, or the whole API."""
