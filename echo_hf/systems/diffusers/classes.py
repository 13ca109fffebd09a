"""Which class draws a model's pictures, and whether it can be asked at all.

A class outside the table is taken when it draws from text alone: its signature says all that is
needed. One that takes pictures is refused, as nothing says how.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echo_hf.errors import GenerationError, unknown
from echo_hf.systems.diffusers.kinds import KINDS, PipelineKind

INDEX = "model_index.json"
# Of every pipeline: one picture, of the seed, as Pillow has it.
OURS = frozenset(
    {"generator", "num_images_per_prompt", "output_type", "return_dict", "latents", "self"}
)
PICTURES = ("image", "video", "frames")
PARTIAL_NOISE = "strength"
TEXT_TO_IMAGE = frozenset({"prompt", "height", "width"})


@dataclass(frozen=True, slots=True)
class PipelineClass:
    """A class of pipelines as a config meets it.

    Attributes:
        name: The class.
        kind: How it is called.
        parameters: The names of its call's parameters.
    """

    name: str
    kind: PipelineKind
    parameters: frozenset[str]


def class_named(index: Path, place: str) -> str:
    """The class that a model's index names.

    Args:
        index: Its `model_index.json`.
        place: What to call the system, for messages.

    Returns:
        The name of the class.

    Raises:
        GenerationError: It names none, or one that comes with the model as code.
    """
    try:
        said = json.loads(index.read_bytes())
        name = said["_class_name"]
    except (ValueError, KeyError, TypeError):
        raise GenerationError(
            f"{place}: {INDEX!r} of the model names no `_class_name`: expected a model as "
            "diffusers saves it"
        ) from None
    if not isinstance(name, str):
        raise GenerationError(
            f"{place}: the model's class {name!r} is code of its own, which is never run here: "
            "choose a model that diffusers itself knows, or run it with adapter 'command'"
        )
    return name


def pipeline_class(name: str, place: str) -> PipelineClass:
    """How a class is called.

    Args:
        name: A class of diffusers.
        place: What to call the system, for messages.

    Returns:
        The class.

    Raises:
        GenerationError: This diffusers has no such class, or how to call it is not known.
    """
    import diffusers

    found = getattr(diffusers, name, None) if name.isidentifier() else None
    if not (inspect.isclass(found) and issubclass(found, diffusers.DiffusionPipeline)):
        raise GenerationError(
            f"{place}: diffusers {diffusers.__version__} has no pipeline {name!r}: expected one of "
            "its own, such as 'FluxKontextPipeline'; install a newer diffusers, or choose another "
            "model"
        )
    parameters = frozenset(inspect.signature(found.__call__).parameters)
    kind = KINDS.get(name) or _from_signature(name, parameters, place)
    return PipelineClass(name, kind, parameters)


def check_call(call: Mapping[str, Any], pipeline: PipelineClass, place: str) -> None:
    """Checks the arguments that a config gives a pipeline.

    Args:
        call: The arguments.
        pipeline: The class.
        place: What to call the system, for messages.

    Raises:
        GenerationError: The pipeline has no such argument, or it follows from the task.
    """
    ours = OURS | pipeline.kind.arguments
    taken = next((name for name in call if name in ours), None)
    if taken is not None:
        raise GenerationError(
            f"{place}: parameters.call has {taken!r}, which follows from the task and from `size` "
            "and `seed`: leave it out"
        )
    for name in call:
        if name not in pipeline.parameters:
            kind = f"argument of {pipeline.name}"
            known = pipeline.parameters - ours
            raise GenerationError(unknown(kind, name, known, f"{place}: parameters.call"))


def _from_signature(name: str, parameters: frozenset[str], place: str) -> PipelineKind:
    pictures = sorted(one for one in parameters - OURS if _is_picture(one))
    if pictures and PARTIAL_NOISE in parameters:
        raise GenerationError(
            f"{place}: {name} draws over a noisy copy of its input ({PARTIAL_NOISE!r}) and follows "
            f"no instruction: expected a pipeline that edits, one of {_editing()}"
        )
    if pictures or not parameters >= TEXT_TO_IMAGE:
        raise GenerationError(
            f"{place}: how {name} is called is not known: expected a pipeline that draws pictures "
            f"from text alone, or one of {_editing()}"
        )
    return PipelineKind(multiple=1)


def _is_picture(parameter: str) -> bool:
    # An adapter's picture is a style that may be left out, of pipelines from text too.
    if parameter.removeprefix("negative_").startswith("ip_adapter"):
        return False
    return any(word in parameter for word in PICTURES)


def _editing() -> str:
    return ", ".join(sorted(name for name, kind in KINDS.items() if kind.picture))
