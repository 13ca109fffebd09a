"""Pictures decoded ahead of their turn, in threads, so that the model does not wait for them."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from echo_hf.engines.base import ImageRef, Request
from echo_hf.engines.pixels import SentPicture

Read = Callable[[ImageRef], SentPicture]
Numbered = tuple[int, Request]
Key = tuple[str, Path | None]

READERS = 4
REQUESTS_AHEAD = 8
PICTURES_AHEAD = 16
MOST_KEPT = 2 * PICTURES_AHEAD


@dataclass
class PicturesAhead:
    """Reads the pictures of the next few requests, and keeps those of the last few.

    Requests with the same pictures follow each other, so that a picture is mostly read once. It
    is a context manager: leaving it drops the pictures.

    Attributes:
        read: Makes what is sent of a picture; raises `PictureError` where it cannot.
    """

    read: Read
    _readers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(READERS))
    _known: OrderedDict[Key, Future[SentPicture]] = field(default_factory=OrderedDict)

    def announced(self, requests: Iterable[Numbered]) -> Iterator[Numbered]:
        """The same requests, taken a few earlier than they are needed.

        Args:
            requests: Requests with their numbers; taken in the thread that asks for the next.

        Yields:
            Each of them, in order.
        """
        waiting: deque[tuple[Numbered, int]] = deque()
        ahead = 0
        for numbered in requests:
            waiting.append((numbered, self._announce(numbered[1])))
            ahead += waiting[-1][1]
            while len(waiting) > REQUESTS_AHEAD or (ahead > PICTURES_AHEAD and len(waiting) > 1):
                first, pictures = waiting.popleft()
                ahead -= pictures
                yield first
        for numbered, _ in waiting:
            yield numbered

    def get(self, reference: ImageRef) -> SentPicture:
        """What is sent of a picture.

        Args:
            reference: The picture.

        Returns:
            The picture, upright and in the size that is sent.

        Raises:
            PictureError: It is missing, changed, or cannot be decoded.
        """
        return self._reading(reference).result()

    def __enter__(self) -> PicturesAhead:
        return self

    def __exit__(self, *_: object) -> None:
        self._readers.shutdown(cancel_futures=True)
        self._known.clear()

    def _announce(self, request: Request) -> int:
        parts = [part for message in request.messages for part in message.parts]
        references = [part for part in parts if isinstance(part, ImageRef)]
        for reference in references:
            self._reading(reference)
        return len(references)

    def _reading(self, reference: ImageRef) -> Future[SentPicture]:
        key = reference.sha256, reference.file
        if key not in self._known:
            self._known[key] = self._readers.submit(self.read, reference)
        self._known.move_to_end(key)
        while len(self._known) > MOST_KEPT:
            self._known.popitem(last=False)[1].cancel()
        return self._known[key]
