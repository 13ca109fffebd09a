"""In which size an engine sends a picture, and how its model names places in it.

Both follow from the engine's signature, which says which model answers and by which rule pictures
are resized before they are sent. What it does not say is said by the config, or is not guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from echo_hf.engines.families import FAMILIES, family_of
from echo_hf.engines.pixels import fitted
from echo_hf.multimodal.box_conventions import Convention, Frame, Size, convention_of

AUTO: Literal["auto"] = "auto"
RULES = "rules"  # the engine that reads the file itself
ASSUMED = Convention.REL_1000  # the one that no resizing disturbs


@dataclass(frozen=True)
class EngineFrames:
    """How one engine sends pictures and names places in them.

    Attributes:
        convention: What the numbers of a box mean.
        family: Whose rule pictures are resized by; null for none.
        min_pixels: Fewest pixels of a picture that is sent; null where the rule is not in force.
        max_pixels: Most pixels, likewise.
        is_assumed: Whether nobody said which convention the model keeps to: it is asked for one.
        is_blind: Whether places cannot be found: the model counts pixels of a picture that its
            server resizes in a way that nobody stated.
    """

    convention: Convention
    family: str | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None
    is_assumed: bool = False
    is_blind: bool = False

    def frame(self, size: Size) -> Frame:
        """How places are named in a picture.

        Args:
            size: Width and height of the upright picture.

        Returns:
            What is needed to map them back.

        Raises:
            PictureError: A model that counts pixels cannot be sent a picture of this shape.
        """
        if self.convention is not Convention.ABS_RESIZED:
            return Frame(self.convention, size, size)
        budget = {"min_pixels": self.min_pixels, "max_pixels": self.max_pixels}
        return Frame(self.convention, size, fitted(size, family=self.family, **budget))


def engine_frames(
    signature: Mapping[str, Any], convention: str = AUTO, family: str | None = None
) -> EngineFrames:
    """How the engine with this signature sends pictures and names places in them.

    `pixels` in the signature are the factor, the fewest and the most pixels by which the engine
    resizes a picture, or null where it sends the file as it is. Then the server resizes it, if the
    model's family does, by a budget of its own: what such a model counts are pixels of a picture
    that nobody here knows the size of.

    Args:
        signature: The engine's.
        convention: A value of `Convention`, or `auto` for the one of the model's family.
        family: The model's family where its name does not tell, a key of `FAMILIES`.

    Returns:
        What follows from them. The plain rules count pixels of the file. A model of no known
        convention is asked for thousandths, and that is said.

    Example:
        >>> model = {"model": "Qwen/Qwen2.5-VL-7B-Instruct", "pixels": [28, 3136, 1003520]}
        >>> engine_frames(model).frame((1290, 2796)).sent
        (672, 1456)
    """
    if signature.get("kind") == RULES:
        return EngineFrames(Convention.ABS_RESIZED)
    model = str(signature.get("model") or "")
    family = family or family_of(model)
    known = convention_of(family, model) if convention == AUTO else Convention(convention)
    rule = _rule(signature.get("pixels"))
    if rule is None:
        blind = family is not None and known is Convention.ABS_RESIZED
        return EngineFrames(known or ASSUMED, is_assumed=known is None, is_blind=blind)
    factor, least, most = rule
    return EngineFrames(known or ASSUMED, _with_factor(factor), least, most, known is None)


def _rule(pixels: Any) -> tuple[int, int, int | None] | None:
    if isinstance(pixels, Mapping):
        pixels = [pixels.get(name) for name in ("factor", "min_pixels", "max_pixels")]
    if not isinstance(pixels, list | tuple) or len(pixels) != 3 or None in pixels[:2]:
        return None
    factor, least, most = pixels
    return int(factor), int(least), None if most is None else int(most)


def _with_factor(factor: int) -> str | None:
    # Families of one factor resize alike once the budget is given.
    return next((name for name, own in FAMILIES.items() if own.factor == factor), None)
