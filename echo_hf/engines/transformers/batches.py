"""Questions put together so that a batch wastes little, and taken apart when one does not work.

In a batch the shorter ones wait for the longest, so neighbours in length are asked together. A
batch too large for the memory is halved, and the following ones begin at the smaller size. In a
batch that fails for another reason each question is asked by itself: the failure is its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TypeVar

from echo_hf.engines.base import Completion
from echo_hf.engines.transformers.question import Question
from echo_hf.errors import EchoError

# A question in a pool of several batches finds neighbours of its length.
BATCHES_IN_POOL = 4
LONGEST_REASON = 300
TOO_LARGE = Completion(
    None,
    "out of memory with this request alone: lower max_pixels, or use a smaller model or dtype",
    "error",
)

Numbered = tuple[int, Question]
Ask = Callable[[Sequence[Question]], list[Completion]]
Item = TypeVar("Item")

log = logging.getLogger(__name__)


def pools(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cuts a stream into lists, each taken only when it is needed.

    Args:
        items: Anything.
        size: Length of a list; the last may be shorter.

    Yields:
        The lists.

    Example:
        >>> list(pools("abcde", 2))
        [['a', 'b'], ['c', 'd'], ['e']]
    """
    rest = iter(items)
    while pool := list(islice(rest, size)):
        yield pool


def failure(error: BaseException) -> Completion:
    """An error as the answer to the one request that it belongs to.

    Args:
        error: What was raised.

    Returns:
        A completion without a text.
    """
    said = " ".join(str(error).split())
    if not isinstance(error, EchoError):
        said = f"{type(error).__name__}: {said}"
    return Completion(None, said[:LONGEST_REASON], "error")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a batch has no answers; the error itself would keep what was computed in memory.

    Attributes:
        completion: What to say of a request that was alone in the batch.
        too_large: Whether fewer requests might have fitted into memory.
    """

    completion: Completion
    too_large: bool


@dataclass
class Batches:
    """Asks questions in batches of a size that the memory holds.

    Attributes:
        ask: Answers a batch as a whole, or raises.
        is_too_large: Whether an error means that the memory was too small.
        recover: Called after an error, when nothing refers to the failed batch any more.
        size: Most questions in a batch; falls, and does not rise again.
    """

    ask: Ask
    is_too_large: Callable[[BaseException], bool]
    recover: Callable[[], None]
    size: int

    def answered(self, pool: Iterable[Numbered]) -> Iterator[tuple[int, Completion]]:
        """Answers a pool of questions.

        Args:
            pool: Questions with their numbers.

        Yields:
            (number, completion) for each of them, batch by batch.
        """
        longest_first = sorted(pool, key=lambda one: (one[1].kind, one[1].length), reverse=True)
        for _, alike in groupby(longest_first, key=lambda one: one[1].kind):
            rest = list(alike)
            while rest:
                batch = rest[: self.size]
                said = self._tried(batch)
                if isinstance(said, Fault) and said.too_large and len(batch) > 1:
                    self._halve(len(batch))
                    continue
                del rest[: len(batch)]
                answers = said if isinstance(said, list) else self._one_by_one(batch, said)
                yield from zip((number for number, _ in batch), answers, strict=True)

    def _one_by_one(self, batch: list[Numbered], fault: Fault) -> Iterator[Completion]:
        if len(batch) == 1:
            yield fault.completion
            return
        for one in batch:
            said = self._tried([one])
            yield said.completion if isinstance(said, Fault) else said[0]

    def _tried(self, batch: list[Numbered]) -> list[Completion] | Fault:
        try:
            return self.ask([question for _, question in batch])
        except Exception as error:
            too_large = self.is_too_large(error)
            fault = Fault(TOO_LARGE if too_large else failure(error), too_large)
        self.recover()
        return fault

    def _halve(self, tried: int) -> None:
        self.size = tried // 2
        log.warning("out of memory with %d requests: going on with %d", tried, self.size)
