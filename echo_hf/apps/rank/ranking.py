"""A person's ranking of one sample's pictures while it is being made, and what changes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranks of the pictures of one sample, by their place on the page.

    Attributes:
        ranks: From 1, the best, up to how many there are; equal ones are ties; null: not ranked.
        barred: Places of single pictures that the person cannot rank; none of them has a rank.
        impossible: Whether the person cannot rank any of them; the ranks are kept meanwhile.
    """

    ranks: tuple[int | None, ...]
    barred: frozenset[int] = frozenset()
    impossible: bool = False

    @classmethod
    def empty(cls, count: int) -> Self:
        """A ranking that has yet to be made.

        Args:
            count: How many pictures there are.

        Returns:
            One without ranks.
        """
        return cls((None,) * count)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Reads what `as_json` gave."""
        return cls(tuple(value["ranks"]), frozenset(value["barred"]), value["impossible"])

    def as_json(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "ranks": list(self.ranks),
            "barred": sorted(self.barred),
            "impossible": self.impossible,
        }

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do: each picture has a rank, or cannot be ranked."""
        left = (at for at, rank in enumerate(self.ranks) if rank is None and at not in self.barred)
        return self.impossible or next(left, None) is None

    @property
    def places(self) -> tuple[int | None, ...]:
        """What is written down: ranks without gaps, null where a picture cannot be ranked.

        Example:
            >>> Ranking((3, 1, 3, None), frozenset({3})).places
            (2, 1, 2, None)
        """
        if self.impossible:
            return (None,) * len(self.ranks)
        there = sorted({rank for rank in self.ranks if rank is not None})
        known = {rank: place for place, rank in enumerate(there, 1)}
        return tuple(None if rank is None else known[rank] for rank in self.ranks)

    def place(self, item: int, rank: int) -> Ranking:
        """Gives a picture a rank; it ties with those that have it already.

        Args:
            item: Place of the picture on the page, from 0.
            rank: From 1 up to how many pictures there are.

        Returns:
            The ranking after that.
        """
        return self._with({item: rank})

    def insert(self, item: int, rank: int) -> Ranking:
        """Gives a picture a rank of its own; those in the way move one down.

        Args:
            item: Place of the picture on the page, from 0.
            rank: As for `place`.

        Returns:
            The ranking after that. Where the last rank would be pushed off, gaps are closed first.

        Example:
            >>> Ranking((1, 2, None)).insert(2, 1).ranks
            (2, 3, 1)
        """
        others = {at: one for at, one in enumerate(self.ranks) if one is not None and at != item}
        taken, end = set(others.values()), rank
        while end in taken:
            end += 1
        if end > len(self.ranks):
            closed = {one: place for place, one in enumerate(sorted(taken), 1)}
            rank = 1 + sum(one < rank for one in taken)
            others, end = {at: closed[one] for at, one in others.items()}, len(self.ranks)
        moved = {at: one + (rank <= one < end) for at, one in others.items()}
        return self._with({**moved, item: rank})

    def better(self, item: int) -> Ranking:
        """Moves a picture one rank up; one without a rank gets the first that nobody has."""
        rank = self.ranks[item]
        return self.place(item, self._first_free() if rank is None else max(rank - 1, 1))

    def worse(self, item: int) -> Ranking:
        """Moves a picture one rank down; one without a rank gets the last that nobody has."""
        rank, last = self.ranks[item], len(self.ranks)
        if rank is None:
            return self.place(item, max(set(range(1, last + 1)) - set(self.ranks)))
        return self.place(item, min(rank + 1, last))

    def clear(self, item: int) -> Ranking:
        """Takes a picture's rank away."""
        return self._with({item: None})

    def bar(self, item: int) -> Ranking:
        """Says that a picture cannot be ranked, or that it can after all."""
        if item in self.barred:
            return replace(self, barred=self.barred - {item})
        cleared = self._with({item: None})
        return replace(cleared, barred=cleared.barred | {item})

    def give_up(self) -> Ranking:
        """Says that none of the pictures can be ranked, or that they can after all."""
        return replace(self, impossible=not self.impossible)

    def _with(self, changed: Mapping[int, int | None]) -> Ranking:
        ranks = tuple(changed.get(at, rank) for at, rank in enumerate(self.ranks))
        return Ranking(ranks, self.barred - set(changed))

    def _first_free(self) -> int:
        return min(set(range(1, len(self.ranks) + 1)) - set(self.ranks))


# What a page may ask for: with a picture and a rank, with a picture, about the sample as a whole.
RANKED: Mapping[str, Callable[[Ranking, int, int], Ranking]] = {
    "place": Ranking.place,
    "insert": Ranking.insert,
}
PICTURE: Mapping[str, Callable[[Ranking, int], Ranking]] = {
    "better": Ranking.better,
    "worse": Ranking.worse,
    "clear": Ranking.clear,
    "bar": Ranking.bar,
}


def changed(ranking: Ranking, kind: str, item: object, rank: object) -> Ranking | None:
    """The ranking after what a page asked for.

    Args:
        ranking: The ranking before.
        kind: What it asked for.
        item: The picture, as the page names it; anything, as pages may send anything.
        rank: The rank, likewise.

    Returns:
        The ranking after that; null where nothing of this kind can be done.
    """
    if kind == "impossible":
        return ranking.give_up()
    count = len(ranking.ranks)
    if type(item) is not int or not 0 <= item < count:
        return None
    if kind in PICTURE:
        return PICTURE[kind](ranking, item)
    if kind in RANKED and type(rank) is int and 1 <= rank <= count:
        return RANKED[kind](ranking, item, rank)
    return None
