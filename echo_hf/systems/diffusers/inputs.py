"""How the inputs of a task are given to a pipeline, and which tasks it does not take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from echo_hf.errors import GenerationError
from echo_hf.reasons import OutcomeStage
from echo_hf.systems.base import Drawn, Task
from echo_hf.systems.diffusers.classes import PipelineClass
from echo_hf.systems.diffusers.options import DiffusersOptions
from echo_hf.systems.local_trouble import unsupported
from echo_hf.systems.misfit import misfit
from echo_hf.systems.stitching import stitched

PLACE = "<img><|image_{number}|></img>"
WRONG_SIZE = "size_of_input"


@dataclass(frozen=True, slots=True)
class GivenInputs:
    """The inputs of a task as a pipeline gets them.

    Attributes:
        arguments: Of its call, `prompt` among them.
        details: What became of them, for the provenance.
    """

    arguments: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


def way_of(pipeline: PipelineClass, options: DiffusersOptions) -> str:
    """How several inputs are given.

    Args:
        pipeline: The class.
        options: The parameters of its system.

    Returns:
        `list`, `stitch`, `first` or `refuse`.
    """
    if options.several_inputs != "auto":
        return options.several_inputs
    return "list" if pipeline.kind.takes_list else "stitch"


def check_way(pipeline: PipelineClass, options: DiffusersOptions, place: str) -> None:
    """Checks that a pipeline takes several inputs the way a config wants to give them.

    Args:
        pipeline: The class.
        options: The parameters of its system.
        place: What to call the system, for messages.

    Raises:
        GenerationError: It takes no list.
    """
    kind = pipeline.kind
    if options.several_inputs == "list" and kind.picture and not kind.takes_list:
        raise GenerationError(
            f"{place}: several_inputs is 'list', and {pipeline.name} takes a single picture: "
            "expected stitch, first or refuse"
        )


def not_taken(task: Task, pipeline: PipelineClass, way: str) -> Drawn | None:
    """What becomes of a task that a pipeline does not take.

    Args:
        task: The task.
        pipeline: The class.
        way: How several inputs are given.

    Returns:
        `unsupported`; null where it takes the task.
    """
    kind = pipeline.kind
    if kind.picture is None:
        return misfit(task, 0, 0, pipeline.name)
    if way == "refuse":
        return misfit(task, kind.fewest, 1, f"{pipeline.name} with several_inputs 'refuse'")
    return misfit(task, kind.fewest, None, pipeline.name)


def not_shown(pictures: Sequence[Image.Image], pipeline: PipelineClass) -> Drawn | None:
    """What becomes of a task with an input that a pipeline cannot see.

    Args:
        pictures: What the pipeline is to get.
        pipeline: The class.

    Returns:
        `unsupported`; null where it can see all of them.
    """
    kind = pipeline.kind
    for picture in pictures:
        short, long = sorted(picture.size)
        if short < kind.shortest_side or long > short * (kind.longest_ratio or long):
            text = f"{pipeline.name} does not see a picture of {picture.width} x {picture.height}"
            return unsupported(OutcomeStage.INPUT, WRONG_SIZE, text)
    return None


def shown_pictures(
    pictures: Sequence[Image.Image],
    pipeline: PipelineClass,
    options: DiffusersOptions,
) -> list[Image.Image]:
    """The pictures that a pipeline gets for the inputs of a task.

    Args:
        pictures: The inputs, in order.
        pipeline: The class.
        options: The parameters of its system.

    Returns:
        All of them; with several, it may be the first alone, or one made of all.
    """
    way = way_of(pipeline, options)
    if len(pictures) < 2 or way == "list":
        return list(pictures)
    if way == "first":
        return [pictures[0]]
    kind = pipeline.kind
    return [stitched(pictures, kind.like, options.stitched_pixels, kind.multiple)]


def given_inputs(
    task: Task,
    shown: Sequence[Image.Image],
    pipeline: PipelineClass,
    options: DiffusersOptions,
) -> GivenInputs:
    """The arguments for a prompt and its pictures.

    Args:
        task: The task.
        shown: The pictures that the pipeline gets.
        pipeline: The class.
        options: The parameters of its system.

    Returns:
        Arguments and details.
    """
    kind, count = pipeline.kind, len(task.inputs)
    if kind.picture is None or not shown:
        return GivenInputs({"prompt": task.prompt}, {"given": 0, "used": 0})
    pictures = list(shown) if kind.takes_list else shown[0]
    arguments: dict[str, Any] = {
        "prompt": _prompt(task.prompt, len(shown), pipeline),
        kind.picture: pictures,
    }
    way = way_of(pipeline, options) if count > 1 else "alone"
    details: dict[str, Any] = {"given": count, "used": count if way != "first" else 1, "way": way}
    if way == "stitch":
        details["stitched"] = list(shown[0].size)
        if kind.resizes is not None:
            arguments[kind.resizes] = False
    return GivenInputs(arguments, details)


def _prompt(prompt: str, count: int, pipeline: PipelineClass) -> str:
    if not pipeline.kind.names_pictures:
        return prompt
    return " ".join([*(PLACE.format(number=number + 1) for number in range(count)), prompt])
