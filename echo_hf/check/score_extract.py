"""How well samples are found in threads: which, their prompts, quality and feedback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from echo_hf.check.found import FoundSample
from echo_hf.check.gold_lines import ExtractLine, GoldSample
from echo_hf.check.measures import Item, Scored
from echo_hf.check.similarity import similarity
from echo_hf.context.answers import Quality
from echo_hf.context.spans import squeezed

TRASH: Quality = "Trash"


@dataclass(frozen=True)
class Pair:
    """A sample that people wrote down with the one that an engine found, or one of them alone."""

    thread: str
    gold: GoldSample | None
    found: FoundSample | None
    answered: bool = True

    @property
    def counts(self) -> bool:
        """Whether it is one that has to be found."""
        return self.gold is not None and not self.gold.optional and self.gold.quality != TRASH

    @property
    def claims(self) -> bool:
        """Whether finding it is right or wrong: never of what was found as Trash, nor of doubt."""
        if self.found is None or self.found.quality == TRASH:
            return False
        if self.gold is None:
            return True
        return self.counts or (not self.gold.optional and self.gold.right == {TRASH})

    @property
    def finds(self) -> bool:
        """Whether it was found: as Trash, which goes no further, only if that is acceptable."""
        if self.gold is None or self.found is None:
            return False
        return self.found.quality != TRASH or TRASH in self.gold.right

    @property
    def has_quality(self) -> bool:
        """Whether its quality is right or wrong, or should have been said."""
        found = self.gold is not None and not self.gold.optional and self.found is not None
        return self.counts or found

    @property
    def place(self) -> str:
        """Its primary post."""
        if self.gold:
            return self.gold.post_urls[0]
        return self.found.primary if self.found else ""


def score_extract(
    lines: Sequence[ExtractLine], found: Mapping[str, Sequence[FoundSample]]
) -> list[Scored]:
    """Compares the samples of threads.

    Args:
        lines: What people wrote down.
        found: What an engine found, by thread; a thread without an answer is left out.

    Returns:
        Precision and recall of samples and of their feedback, and of the samples that were found
        the similarity and exactness of prompts and the share of acceptable qualities.
    """
    pairs = [pair for line in lines for pair in _pairs(line, found.get(line.root_url))]
    wanted = [pair for pair in pairs if pair.counts]
    claims = [pair for pair in pairs if pair.claims]
    covered = sum(pair.answered for pair in wanted), len(wanted)
    return [
        Scored("sample_precision", [_is_sample(pair) for pair in claims], covered),
        Scored("sample_recall", [_is_found(pair) for pair in wanted]),
        Scored("prompt_similarity", [_similarity(pair) for pair in wanted], graded=True),
        Scored("prompts_exact", [_is_exact(pair) for pair in wanted]),
        Scored("quality_accuracy", [_quality(pair) for pair in pairs if pair.has_quality]),
        *_feedback(lines, pairs),
    ]


def matched(
    gold: Sequence[GoldSample], found: Sequence[FoundSample]
) -> Iterator[tuple[GoldSample, FoundSample]]:
    """Pairs samples with the same primary post, those with the most similar prompts first.

    What was found as Trash takes only what is left: it goes no further.

    Args:
        gold: Samples of a thread as people wrote them down.
        found: Samples that an engine found there.

    Yields:
        Pairs, each sample in one at most; their order does not matter.
    """
    candidates = [
        (_order(one, other), one, other)
        for one in gold
        for other in found
        if one.post_urls[0] == other.primary
    ]
    taken: set[int] = set()
    for _, one, other in sorted(candidates, key=itemgetter(0)):
        if id(one) not in taken and id(other) not in taken:
            taken |= {id(one), id(other)}
            yield one, other


def _order(gold: GoldSample, found: FoundSample) -> tuple[bool, float, tuple[object, ...]]:
    spelt = (squeezed(gold.prompt), found.prompt, found.quality, found.feedback)
    return found.quality == TRASH, -similarity(gold.prompt, found.prompt), spelt


def _pairs(line: ExtractLine, found: Sequence[FoundSample] | None) -> Iterator[Pair]:
    if found is None:
        yield from (Pair(line.root_url, one, None, answered=False) for one in line.samples)
        return
    pairs = list(matched(line.samples, found))
    yield from (Pair(line.root_url, one, other) for one, other in pairs)
    used = {id(sample) for pair in pairs for sample in pair}
    yield from (Pair(line.root_url, one, None) for one in line.samples if id(one) not in used)
    yield from (Pair(line.root_url, None, one) for one in found if id(one) not in used)


def _is_sample(pair: Pair) -> Item:
    prompt = pair.found.prompt if pair.found else ""
    expected = pair.gold.prompt if pair.gold and pair.counts else "no sample"
    return Item(pair.thread, pair.place, expected, prompt, float(pair.counts))


def _is_found(pair: Pair) -> Item:
    return _compared(pair, float(pair.finds) if pair.answered else None)


def _similarity(pair: Pair) -> Item:
    if not pair.gold or not pair.found or not pair.finds:
        return _compared(pair, None)
    return _compared(pair, similarity(pair.gold.prompt, pair.found.prompt))


def _is_exact(pair: Pair) -> Item:
    if not pair.gold or not pair.found or not pair.finds:
        return _compared(pair, None)
    return _compared(pair, float(squeezed(pair.gold.prompt) == squeezed(pair.found.prompt)))


def _quality(pair: Pair) -> Item:
    right = pair.gold.right if pair.gold else frozenset()
    given = pair.found.quality if pair.found else ""
    score = float(given in right) if pair.found else None
    return Item(pair.thread, pair.place, " or ".join(sorted(right)), given, score)


def _compared(pair: Pair, score: float | None) -> Item:
    expected = pair.gold.prompt if pair.gold else ""
    return Item(pair.thread, pair.place, expected, pair.found.prompt if pair.found else "", score)


def _feedback(lines: Sequence[ExtractLine], pairs: Sequence[Pair]) -> list[Scored]:
    optional = {url for line in lines for one in line.samples for url in one.feedback_optional}
    optional |= {
        url for pair in pairs if pair.gold and not pair.counts for url in pair.gold.feedback
    }
    wanted = [
        (pair, url) for pair in pairs if pair.gold and pair.counts for url in pair.gold.feedback
    ]
    claims = [
        (pair, url)
        for pair in pairs
        if pair.found and pair.claims
        for url in pair.found.feedback
        if url not in optional
    ]
    answered = sum(pair.answered for pair, _ in wanted)
    return [
        Scored(
            "feedback_precision",
            [_is_feedback(pair, url) for pair, url in claims],
            (answered, len(wanted)),
        ),
        Scored("feedback_recall", [_is_heard(pair, url) for pair, url in wanted]),
    ]


def _is_feedback(pair: Pair, url: str) -> Item:
    listed = pair.gold is not None and url in pair.gold.feedback
    expected = "feedback" if listed else "no feedback of this sample"
    return Item(pair.thread, url, expected, "feedback", float(listed))


def _is_heard(pair: Pair, url: str) -> Item:
    heard = pair.found is not None and pair.finds and url in pair.found.feedback
    given = "feedback" if heard else "no feedback of this sample"
    return Item(pair.thread, url, "feedback", given, float(heard) if pair.answered else None)
