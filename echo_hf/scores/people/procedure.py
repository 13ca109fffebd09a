"""How rankings are compared: what each protocol does where a choice has to be made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from echo_hf.errors import ScoreError, unknown
from echo_hf.scores.rule import Protocol

Blocks = Literal["samples", "rankings"]
Ties = Literal["kept", "random"]


@dataclass(frozen=True)
class Procedure:
    """What a protocol does.

    Attributes:
        judges_ties: Whether equal ratings are ties, or chance puts them in an order.
        blocks: What a block of the tests is: the consensus of a sample, or one person's ranking.
        test: The test of pairs that is reported first.
        adjusted: The p value of a pair that says whether it differs.
    """

    judges_ties: Ties
    blocks: Blocks
    test: Literal["dunn", "siegel_castellan"]
    adjusted: Literal["bonferroni", "holm"]


PROCEDURES: Mapping[Protocol, Procedure] = {
    "published": Procedure("random", "rankings", "dunn", "bonferroni"),
    "corrected": Procedure("kept", "samples", "siegel_castellan", "holm"),
}


def procedure_of(protocol: Protocol) -> Procedure:
    """The procedure of a protocol.

    Args:
        protocol: `published`, what the paper describes, or `corrected`.

    Returns:
        The procedure.

    Raises:
        ScoreError: There is no such protocol.

    Example:
        >>> procedure_of("published").judges_ties
        'random'
    """
    if protocol not in PROCEDURES:
        raise ScoreError(unknown("protocol", protocol, PROCEDURES))
    return PROCEDURES[protocol]
