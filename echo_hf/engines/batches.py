"""Ask in batches: files of requests that a provider answers within a day.

What marks a batch as ours stands in its metadata, and open batches are listed before one is sent: a
run that was killed waits for what it had sent, and pays for nothing twice. What a batch holds is
read from its input file, or where that cannot be read, from its answers.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from hashlib import sha256
from tempfile import TemporaryFile
from typing import IO, Any

from echo_hf._infra.http_errors import OK, HttpResponse
from echo_hf._infra.retry import RequestError
from echo_hf._infra.text import pluralize
from echo_hf.engines.batch_api import Batch, BatchApi, MissingError
from echo_hf.engines.batch_rows import (
    ID_CHARACTERS,
    AnswerRows,
    BatchOptions,
    Place,
    RefusedRow,
    Row,
    RowAnswer,
    report_refused,
)
from echo_hf.errors import EngineError

logger = logging.getLogger(__name__)

FILE_PREFIX = "echo-hf-"
MAX_ORPHAN_SECONDS = 3600.0  # a file without a batch is of a run that was killed
MAX_UNREAD_SECONDS = 7 * 86400.0
MAX_OPEN_BATCHES = 20
MAX_WAITING_ROWS = 100_000
MAX_INPUT_BYTES = 200_000_000
FIRST_POLL_SECONDS = 1.0
LOOKS_FOR_FILES = 5  # a batch may be completed a little before its files are there
QUEUE_FULL = "token_limit_exceeded"
ROW_ID = re.compile(rb'\s*\{\s*"custom_id"\s*:\s*"([0-9a-f]{%d})"' % ID_CHARACTERS)
MEGABYTE = 1_000_000


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
        self.refused, self._is_reported = Counter[RefusedRow](), False
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
            # An answer to a row that was asked late had to stay there until now; one that this run
            # did not ask for stays for another.
            for batch in self._adopted:
                is_read = batch.is_used and batch.has_ended and not batch.places
                if is_read or self._is_forgotten(batch):
                    self._finish(batch)
        report_refused(self.refused, self.api.base_url)

    def _finish(self, batch: Batch) -> None:
        self.finished.add(batch.id)
        names = (*batch.output_files, *([batch.input_file] if batch.input_file else []))
        self.api.delete_files(names)  # the input last: what it names was read

    def _is_forgotten(self, batch: Batch) -> bool:
        """Return whether nobody will ask for it: its answers are gone, or a week old."""
        if not (batch.was_ended and batch.rows and batch.input_file):
            return False
        if batch.created_at is not None and batch.created_at < time.time() - MAX_UNREAD_SECONDS:
            logger.warning("batch %s: its answers are a week old and are deleted unread", batch.id)
            return True
        # A provider that shows no single file shows neither.
        is_shown = self.api.has_file(batch.input_file)
        return is_shown and not any(map(self.api.has_file, batch.output_files))

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
                self.api.download(input_file, file, MAX_INPUT_BYTES)
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
        logger.info("batch %s: %s sent", batch.id, pluralize(len(ids), "request"))
        if not (self._is_reported or self.finished):
            self._is_reported = True
            logger.warning(
                "requests wait in batches at %r, which stay there if this run ends: the same "
                "command goes on with them",
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
            if not any(earlier.places for earlier in self._adopted):
                self._answers.file.truncate(0)
            places, refused, missing = dict[str, Place](), Counter[RefusedRow](), 0
            for name in batch.output_files:
                start = self._answers.file.seek(0, 2)
                try:
                    self.api.download(name, self._answers.file)
                except MissingError:
                    missing += 1
                else:
                    refused += self._answers.index(start, batch.rows, places)
            is_whole = not missing and (batch.output_files or batch.status != "completed")
            if is_whole or not looks:
                batch.places = places
                self.refused += refused
            else:
                looks -= 1
                self._sleep(batch)
                self._look(batch)
        return batch.places
