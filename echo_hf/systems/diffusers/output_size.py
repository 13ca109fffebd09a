"""The size that a pipeline is asked for, as arguments of its call."""

from __future__ import annotations

from echo_hf.errors import GenerationError
from echo_hf.systems.config import FixedSize, Size
from echo_hf.systems.diffusers.kinds import PipelineKind
from echo_hf.systems.sizes import Pixels, chosen_size


def check_size(size: Size, kind: PipelineKind, place: str) -> None:
    """Checks that a pipeline draws exactly the size that a config fixes.

    Args:
        size: What the config says.
        kind: How the pipeline is called.
        place: What to call the system, for messages.

    Raises:
        GenerationError: It would draw another size.
    """
    if not isinstance(size, FixedSize):
        return
    if size.width % kind.multiple or size.height % kind.multiple:
        raise GenerationError(
            f"{place}: size is {size.width} x {size.height}: expected sides that are multiples of "
            f"{kind.multiple}, which is what its pipeline draws"
        )


def size_arguments(
    size: Size, first_input: Pixels | None, kind: PipelineKind
) -> tuple[dict[str, int], Pixels | None]:
    """The arguments for a size.

    Args:
        size: What the config says.
        first_input: Width and height of the first input; null without inputs.
        kind: How the pipeline is called.

    Returns:
        The arguments, and the width and height that they ask for; none and null where the
        pipeline is to choose.

    Example:
        >>> from echo_hf.systems.diffusers.kinds import KINDS
        >>> size_arguments("match_input", (300, 200), KINDS["QwenImageEditPlusPipeline"])
        ({'width': 1248, 'height': 832}, (1248, 832))
    """
    asked = chosen_size(size, first_input, kind.like)
    if asked is None:
        return {}, None
    arguments = {"width": asked[0], "height": asked[1]}
    if kind.area is not None:
        arguments[kind.area] = asked[0] * asked[1]
    return arguments, asked
