"""Every word and phrase that says something about a result, and what it is a sign of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from echo_hf.engines.rules.verdicts import complaint_words as complaints
from echo_hf.engines.rules.verdicts import failures
from echo_hf.engines.rules.verdicts import judging_words as words
from echo_hf.engines.rules.verdicts import praise_words as praise
from echo_hf.engines.rules.verdicts.lexicon import Lexicon


class Sign(Enum):
    """What a phrase is a sign of.

    WANTED speaks of a failure only where it is denied, CHANGED only of what should stay as it is,
    GONE only of what should not be removed. TOPIC and SUBJECT name what is spoken of.
    """

    NEUTRAL = auto()
    PRAISE = auto()
    WEAK_PRAISE = auto()
    AMUSED = auto()
    COMPLAINT = auto()
    WEAK_COMPLAINT = auto()
    REPEATED = auto()
    HEDGED = auto()
    SOFTENED = auto()
    TEMPERED = auto()
    CHANGED = auto()
    GONE = auto()
    WANTED = auto()
    WANTED_BY_ANYONE = auto()
    NEGATOR = auto()
    TOPIC = auto()
    SUBJECT = auto()


class Meaning(NamedTuple):
    """What a phrase means: a sign, and the failure that it names."""

    sign: Sign
    failure: str | None = None


def entries() -> Iterator[tuple[Meaning, Iterable[str]]]:
    """The phrases of every meaning; where two share a phrase, the first has it."""
    yield Meaning(Sign.NEUTRAL), words.NEUTRAL
    for failure, several in failures.FAULTS.items():
        yield Meaning(Sign.COMPLAINT, failure), several
    yield Meaning(Sign.TEMPERED, failures.SEVERAL_TRIES), complaints.SEVERAL_TRIES
    yield Meaning(Sign.TEMPERED, failures.INCONSISTENCY), complaints.UNEVEN
    yield Meaning(Sign.TEMPERED), complaints.TEMPERING
    yield Meaning(Sign.HEDGED), complaints.HEDGES
    yield Meaning(Sign.SOFTENED), complaints.SOFTENING
    yield Meaning(Sign.COMPLAINT), complaints.COMPLAINT
    yield Meaning(Sign.PRAISE), praise.PRAISE
    yield Meaning(Sign.GONE, failures.MISSING), words.GONE
    yield Meaning(Sign.CHANGED), words.CHANGED
    yield Meaning(Sign.WEAK_COMPLAINT), complaints.WEAK_COMPLAINT
    yield Meaning(Sign.REPEATED), complaints.REPEATED
    yield Meaning(Sign.WEAK_PRAISE), praise.WEAK_PRAISE
    yield Meaning(Sign.AMUSED), praise.AMUSED
    yield Meaning(Sign.NEGATOR), words.NEGATORS
    yield Meaning(Sign.WANTED_BY_ANYONE), words.WANTED_BY_ANYONE
    for failure, several in failures.TOPICS.items():
        yield Meaning(Sign.TOPIC, failure), several
    yield Meaning(Sign.WANTED, failures.IGNORED), words.OBEYED
    yield Meaning(Sign.WANTED), words.WANTED
    yield Meaning(Sign.SUBJECT), failures.SUBJECTS


SIGNS = Lexicon(entries())
