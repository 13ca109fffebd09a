"""Weigh all that tells pictures apart, and find the way that clearly has most for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from echo_hf.engines.rules.multimodal.edits import Edit
from echo_hf.engines.rules.multimodal.evidence import Candidate, input_weight
from echo_hf.engines.rules.multimodal.looks import Look
from echo_hf.engines.rules.multimodal.palettes import blend_among
from echo_hf.engines.rules.multimodal.role_sample import Picture, Sample
from echo_hf.engines.rules.multimodal.said_roles import Said

CLEAR = 2.0  # the least weight that decides
MOST_WEIGHED = 6
ORDER = 2.0  # of words such as "before / after", which only name an order
BLEND = 2.0  # of colours that only one picture shares with all others


@dataclass(frozen=True)
class Weighing:
    """A sample whose pictures are weighed.

    Attributes:
        sample: The sample.
        edit: What its prompt asks for.
        looks: Its pictures as plain measures see them.
    """

    sample: Sample
    edit: Edit
    looks: Mapping[int, Look | None]

    def inputs_among(self, pictures: Sequence[Picture], said: Said) -> Sequence[Picture] | None:
        """Finds the pictures that went in.

        Args:
            pictures: Two or more pictures, of which at least one came out.
            said: What their author says about them.

        Returns:
            The inputs, null when nothing clearly tells.
        """
        if len(pictures) > MOST_WEIGHED:
            return None
        listed = said.order.count("input") if said.order else 0
        count = min(max(1, self.edit.inputs, listed), len(pictures) - 1)
        ways = {some: self._weight(said, pictures, some) for some in combinations(pictures, count)}
        best, *others = sorted(ways, key=lambda some: -ways[some])
        if ways[best] < CLEAR or any(ways[best] - ways[one] < CLEAR for one in others):
            return None
        return best

    def _weight(self, said: Said, pictures: Sequence[Picture], inputs: Sequence[Picture]) -> float:
        """How much speaks for some pictures as the inputs: the least of it over all pairs."""
        rest = [one for one in pictures if one not in inputs]
        weight = min(
            input_weight(
                self._candidate(one),
                self._candidate(other),
                self.sample.prompt,
                self.edit,
                self.sample.names,
            )
            for one in inputs
            for other in rest
        )
        if said.order and len(said.order) == len(pictures):
            told = [one for one, role in zip(pictures, said.order, strict=True) if role == "input"]
            weight += ORDER if told == list(inputs) else -ORDER
        if len(inputs) > 1 and len(rest) == 1:
            blend = blend_among([self.looks[one.number] for one in pictures])
            weight += 0 if blend is None else BLEND if pictures[blend] is rest[0] else -BLEND
        return weight

    def _candidate(self, picture: Picture) -> Candidate:
        return Candidate(picture.alt_text, self.looks[picture.number])
