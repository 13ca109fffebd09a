"""How well posts are kept, samples found, comments judged, and samples screened."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from echo_hf.builder.gold.inputs import FoundSafety, FoundSample, FoundTask, FoundVerdict, Key
from echo_hf.builder.gold.lines import (
    ExtractLine,
    FeedbackLine,
    GoldSample,
    RelevanceLine,
    SafetyLine,
    TaskLine,
    folded,
)
from echo_hf.builder.gold.measures import Item, Scored, similarity
from echo_hf.samples.spans import squeezed
from echo_hf.samples.thread_parts import Quality

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
    """Compares the samples of threads."""
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
    """Pairs samples with the same primary post, those with the most similar prompts first."""
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


def score_relevance(
    lines: Sequence[RelevanceLine],
    found: Mapping[str, int],
    keep: Collection[int],
    root_of: Mapping[str, str],
) -> list[Scored]:
    """Compares scores of posts."""
    clear = [line for line in lines if len({score in keep for score in line.right}) == 1]
    doubtful = len(lines) - len(clear)
    covered = sum(line.url in found for line in clear), len(clear)
    scored: list[Scored] = []
    for side, kept in (("keep", True), ("drop", False)):
        claimed = [one for one in clear if one.url in found and (found[one.url] in keep) is kept]
        wanted = [one for one in clear if (one.score in keep) is kept]
        precision = list(_sides(claimed, found, keep, root_of))
        recall = list(_sides(wanted, found, keep, root_of))
        scored.append(Scored(f"{side}_precision", precision, covered, skipped=doubtful))
        scored.append(Scored(f"{side}_recall", recall, skipped=doubtful))
    return [
        *scored,
        Scored("score_accuracy", [_scored(line, found, root_of) for line in lines]),
    ]


def _sides(
    lines: Sequence[RelevanceLine],
    found: Mapping[str, int],
    keep: Collection[int],
    root_of: Mapping[str, str],
) -> Iterator[Item]:
    for line in lines:
        given = found.get(line.url)
        agree = (given in keep) == (line.score in keep)
        expected = "keep" if line.score in keep else "drop"
        said = "" if given is None else "keep" if given in keep else "drop"
        score = None if given is None else float(agree)
        yield Item(root_of[line.url], line.url, expected, said, score)


def _scored(line: RelevanceLine, found: Mapping[str, int], root_of: Mapping[str, str]) -> Item:
    given = found.get(line.url)
    expected = " or ".join(map(str, sorted(line.right)))
    score = None if given is None else float(given in line.right)
    return Item(root_of[line.url], line.url, expected, str(given or ""), score)


NO_PICTURE = "no picture asked for"
NO_KEYWORD = "no keyword"


def score_verdicts(
    lines: Sequence[FeedbackLine], found: Mapping[str, FoundVerdict], root_of: Mapping[str, str]
) -> list[Scored]:
    """Compares what comments say."""
    failures = [line for line in lines if line.right_keywords]
    return [
        Scored("verdict_accuracy", [_verdict(line, found, root_of) for line in lines]),
        Scored("keyword_accuracy", [_keyword(line, found, root_of) for line in failures]),
    ]


def score_tasks(
    lines: Sequence[TaskLine], asked: Mapping[str, Key], found: Mapping[str, FoundTask]
) -> list[Scored]:
    """Compares what samples ask for; each completion of a template is one."""
    line_of = {line.key: line for line in lines}
    rows = [(id_, line_of[key]) for id_, key in asked.items() if key in line_of]
    return [
        Scored("kind_accuracy", [*_kinds(rows, found)]),
        Scored("task_accuracy", [*_tasks(rows, found)]),
    ]


def _verdict(
    line: FeedbackLine, found: Mapping[str, FoundVerdict], root_of: Mapping[str, str]
) -> Item:
    given = found[line.post_url].verdict if line.post_url in found else None
    expected = " or ".join(sorted(line.right))
    score = None if given is None else float(given in line.right)
    return Item(root_of[line.post_url], line.post_url, expected, given or "", score)


def _keyword(
    line: FeedbackLine, found: Mapping[str, FoundVerdict], root_of: Mapping[str, str]
) -> Item:
    said = found.get(line.post_url)
    given = folded(said.keyword or "") if said else ""
    expected = " or ".join(sorted(line.right_keywords))
    score = float(given in line.right_keywords) if given else None
    shown = given or (NO_KEYWORD if said else "")
    return Item(root_of[line.post_url], line.post_url, expected, shown, score)


def _kinds(rows: Sequence[tuple[str, TaskLine]], found: Mapping[str, FoundTask]) -> Iterator[Item]:
    for id_, line in rows:
        given = found[id_].kind or NO_PICTURE if id_ in found else ""
        score = float(given == line.kind) if given else None
        yield Item(line.root_url, line.prompt, line.kind, given, score)


def _tasks(rows: Sequence[tuple[str, TaskLine]], found: Mapping[str, FoundTask]) -> Iterator[Item]:
    for id_, line in rows:
        given = found[id_].task or NO_PICTURE if id_ in found else ""
        score = float(given in line.right) if given else None
        yield Item(line.root_url, line.prompt, " or ".join(sorted(line.right)), given, score)


REMOVE, KEEP = "remove", "keep"
NO_HAZARD = "no hazard"
Screened = tuple[SafetyLine, FoundSafety | None]


def score_safety(
    lines: Sequence[SafetyLine],
    asked: Mapping[str, Key],
    found: Mapping[str, FoundSafety],
    remove: Collection[str],
) -> list[Scored]:
    """Compares what is removed, and which hazards are named."""
    line_of = {line.key: line for line in lines}
    rows = [(line_of[key], found.get(id_)) for id_, key in asked.items() if key in line_of]
    removed = [(line, said) for line, said in rows if said and said.removed]
    unsafe, harmless = (
        [one for one in rows if _side(one[0], remove) == side] for side in (REMOVE, KEEP)
    )
    covered = sum(said is not None for _, said in rows), len(rows)
    return [
        Scored("removal_precision", [*_safety_sides(removed, remove)], covered),
        Scored("removal_recall", [*_safety_sides(unsafe, remove)]),
        Scored("keep_recall", [*_safety_sides(harmless, remove)]),
        Scored("hazard_recall", [*_hazards(rows)]),
    ]


def _side(line: SafetyLine, remove: Collection[str]) -> str:
    return KEEP if set(line.categories).isdisjoint(remove) else REMOVE


def _safety_sides(rows: Sequence[Screened], remove: Collection[str]) -> Iterator[Item]:
    for line, said in rows:
        expected = _side(line, remove)
        given = "" if said is None else REMOVE if said.removed else KEEP
        score = None if said is None else float(given == expected)
        yield Item(line.root_url, line.prompt, expected, given, score)


def _hazards(rows: Sequence[Screened]) -> Iterator[Item]:
    for line, said in rows:
        for code in line.categories:
            given = "" if said is None else ", ".join(said.categories) or NO_HAZARD
            score = None if said is None else float(code in said.categories)
            yield Item(line.root_url, line.prompt, code, given, score)
