"""Judge what one comment says about the result of a task."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from itertools import pairwise
from typing import NamedTuple

from echo_hf.engines.rules.common_words import ELSEWHERE
from echo_hf.engines.rules.coverage import covers
from echo_hf.engines.rules.folding import words_of
from echo_hf.engines.rules.names import Names
from echo_hf.engines.rules.reading import Reading
from echo_hf.engines.rules.verdicts import failures
from echo_hf.engines.rules.verdicts.clauses import Asked, Clause
from echo_hf.engines.rules.verdicts.deciding import NONE, Verdict, decide
from echo_hf.engines.rules.verdicts.expectations import leaves_open, mismatch, misses, recounts
from echo_hf.engines.rules.verdicts.han_judging import read_han
from echo_hf.engines.rules.verdicts.han_verdict_words import CONTRAST as HAN_CONTRAST
from echo_hf.engines.rules.verdicts.judging_words import SPEAKERS
from echo_hf.engines.rules.verdicts.lexicon import plain_words
from echo_hf.engines.rules.verdicts.misspellings import misspelt, quotes_unasked
from echo_hf.engines.rules.verdicts.sentences import EXCEPT, Sentence, sentences_of
from echo_hf.engines.rules.verdicts.tones import Mark, Said, Tone
from echo_hf.engines.rules.words import words

GOOD = re.compile("[😍🔥👏🤩💯🙌👌❤🥰👍😻💖🎉✨🤌💪🫶😎🏆💚💙💜🧡💛✅🥹😮👀🤯😂🤣😁😄😊]")
BAD = re.compile("[👎🤮😬🙄💩😕😞😡🤦😒😑🫠🥲😅🙃❌😖😩☹🤨]")
RATING = re.compile(r"(?<![\d/])(\d{1,2})(?:\.\d)?\s?/\s?10(?![\d/])")
GOOD_RATING, POOR_RATING = 7, 4
MOST_RATINGS = 3
EVEN = re.compile(
    r"(?<!not )(?<!n't )\b(?:even (?:the|his|her|my|its|their|your|got|kept|has)|sogar|persino"
    r"|perfino|até (?:o|a)|hasta (?:el|la)|même (?:le|la|les))\b"
)
THAN = re.compile(r"\b(?:than|que|als|wie|di)\b|比|より")
BETTER = words(
    en="better best prefer preferred prefers nails nailed wins back switching stick switched",
    es="mejor prefiero",
    fr="mieux préfère",
    de="besser lieber bevorzuge",
    pt="melhor prefiro",
    it="meglio preferisco",
)
# First words of advice, which praises nothing.
ADVICE = words(
    en="try add use put adding maybe",
    es="prueba añade",
    fr="essaie ajoute",
    de="versuch probier",
    pt="tente adicione",
    it="prova aggiungi",
)
FEWEST_QUOTED = 3
MOST_WORDS_TOGETHER = 60


class Beside(NamedTuple):
    """What comments are read beside.

    Attributes:
        prompt: What was asked for; empty where no picture was.
        names: The names around the target.
        words: The prompt's plain words.
        asked: What of them decides how comments are read.
    """

    prompt: str
    names: Names
    words: Set[str]
    asked: Asked


def judge(reading: Reading, beside: Beside) -> Verdict | None:
    """What a comment says about the result.

    Args:
        reading: The comment.
        beside: What was asked for.

    Returns:
        The verdict; null where the word lists do not cover the comment's language.
    """
    said, contrast = _read(reading, beside)
    if not (reading.covered or _speaks_known_words(reading, said)):
        return None
    verdict = decide(said, contrast=contrast)
    if verdict == NONE and beside.asked.shown:
        # Words for what the picture shows are all there is: so they are about the result.
        said, contrast = _read(reading, beside._replace(asked=beside.asked._replace(shown=set())))
        verdict = decide(said, contrast=contrast)
    return _without_words(reading, said) if verdict == NONE else verdict


def _speaks_known_words(reading: Reading, said: Sequence[Said]) -> bool:
    """Whether a text too short of common words is in a known language all the same."""
    known_script = covers(reading.folded, frozenset())
    return known_script and reading.words.isdisjoint(ELSEWHERE) and any(one.marks for one in said)


def _read(reading: Reading, beside: Beside) -> tuple[list[Said], bool]:
    sentences = sentences_of(reading.folded)
    by_sentence = [list(_clauses(sentence, reading, beside)) for sentence in sentences]
    said = [clause for several in by_sentence for clause in several]
    said += [*_tempered(sentences, by_sentence), *_expected(sentences, said)]
    contrast = any(sentence.before_contrast for sentence in sentences)
    if reading.has_han:
        said += read_han(reading.folded, removal=beside.asked.removal)
        contrast = contrast or HAN_CONTRAST.search(reading.folded) is not None
    said.append(Said(list(_beside_words(reading, beside))))
    return said, contrast


def _clauses(sentence: Sentence, reading: Reading, beside: Beside) -> Iterator[Said]:
    clauses = [Clause(words) for words in sentence.clauses if not _quoted(words, beside)]
    topics = [topic for clause in clauses for topic in clause.topics]
    if leaves_open(sentence):
        yield Said((), topics)
    elif reading.other and (about := _about_another(sentence, beside.names)):
        yield about
    else:
        advises = bool(sentence.words) and sentence.words[0] in ADVICE
        yield from (
            one for one in _said(sentence, clauses, topics, beside) if not (advises and one.praises)
        )


def _said(
    sentence: Sentence, clauses: Sequence[Clause], topics: Sequence[str], beside: Beside
) -> Iterator[Said]:
    for number, clause in enumerate(clauses):
        yield Said(clause.marks(topics, beside.asked, first=number == 0), clause.topics, topics)
    if misses(sentence):
        yield Said([Mark(Tone.WEAK_COMPLAINT, failures.MISSING)], (), topics)


def _expected(sentences: Sequence[Sentence], said: Sequence[Said]) -> Iterator[Said]:
    """What came beside what was asked for; somebody who praises got both."""
    plain = [word for sentence in sentences for word in sentence.words]
    praised = any(mark.tone is Tone.PRAISE for one in said for mark in one.marks)
    if not praised and len(plain) <= MOST_WORDS_TOGETHER and (failure := mismatch(plain)):
        topics = [topic for one in said for topic in one.topics]
        yield Said([Mark(Tone.WEAK_COMPLAINT, failure)], (), topics)


def _quoted(words: Sequence[str], beside: Beside) -> bool:
    """Whether a clause only repeats what was asked for."""
    return len(words) >= FEWEST_QUOTED and set(words) <= beside.words


def _about_another(sentence: Sentence, names: Names) -> Said | None:
    """What a sentence about another model says of the target; null where it is about both."""
    in_it = set(words_of(sentence.text))
    if not names.uses_other(sentence.text, in_it) or names.names_target(sentence.text, in_it):
        return None
    other, than = next(names.others.finditer(sentence.text, in_it)), THAN.search(sentence.text)
    if than and than.start() < other.start():
        return None
    return Said(() if BETTER.isdisjoint(in_it) else [Mark(Tone.COMPLAINT)])


def _tempered(sentences: Sequence[Sentence], said: Sequence[Sequence[Said]]) -> Iterator[Said]:
    """What a word of contrast says where what stands behind it neither praises nor complains."""
    praised = any(one.praises for several in said for one in several)
    for (before, after), (earlier, later) in zip(pairwise(sentences), pairwise(said), strict=True):
        excepts = before.end in EXCEPT and bool(before.clauses)
        contrasts = before.before_contrast and any(one.praises for one in earlier)
        if (excepts or contrasts) and after.clauses and not after.asks and _undecided(later):
            yield _temper(later)
    for sentence, own in zip(sentences, said, strict=True):
        if sentence.end in ("though", "tho") and praised and sentence.clauses and _undecided(own):
            yield _temper(own)


def _undecided(said: Sequence[Said]) -> bool:
    return not any(one.praises or one.complains for one in said)


def _temper(said: Sequence[Said]) -> Said:
    topics = [topic for one in said for topic in one.topics]
    return Said([Mark(Tone.TEMPERED, next(iter(topics), None))])


def _beside_words(reading: Reading, beside: Beside) -> Iterator[Mark]:
    """Marks that are no words: what is quoted, counted and rated."""
    if misspelt(reading.text, beside.prompt):
        yield Mark(Tone.COMPLAINT, failures.MISSPELT)
    elif quotes_unasked(reading.text, beside.prompt):
        yield Mark(Tone.WEAK_COMPLAINT, failures.MISSPELT)
    if recounts(plain_words(reading.folded)):
        yield Mark(Tone.COMPLAINT, failures.COUNTING)
    if EVEN.search(reading.folded):
        yield Mark(Tone.WEAK_PRAISE)
    for rated in RATING.findall(reading.folded)[:MOST_RATINGS]:
        good, poor = int(rated) >= GOOD_RATING, int(rated) <= POOR_RATING
        yield Mark(Tone.PRAISE if good else Tone.COMPLAINT if poor else Tone.TEMPERED)


def _without_words(reading: Reading, said: Sequence[Said]) -> Verdict:
    """What emoji, exclamation marks and mere mentions say, where words say nothing."""
    text = reading.text
    asks = "?" in text or "？" in text
    topics = (topic for one in said for topic in one.topics)
    if BAD.search(text):
        return Verdict("failure", next(topics, None))
    amused = any(mark.tone is Tone.AMUSED for one in said for mark in one.marks)
    if GOOD.search(text) or amused or (not asks and ("!" in text or "！" in text)):
        return Verdict("success")
    critical = next((topic for topic in topics if topic in failures.CRITICAL), None)
    mentions = critical and not asks and reading.words.isdisjoint(SPEAKERS | ADVICE)
    return Verdict("failure", critical) if mentions else NONE
