"""What goes wrong in a model of this process, as what became of a task: one line, no folders."""

from __future__ import annotations

from echo_hf.engines.transformers.loading import is_out_of_memory
from echo_hf.errors import PictureError
from echo_hf.open_picture import BadPictureError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Drawn
from echo_hf.systems.secrecy import without_folders

LONGEST_TEXT = 300
OUT_OF_MEMORY = "out_of_memory"


def one_line(error: BaseException) -> str:
    """The first line of what an error says, without the folders of this machine.

    Args:
        error: What was raised.

    Returns:
        At most 300 characters.

    Example:
        >>> one_line(OSError("cannot read '/home/mira/models/tiny/vae.json'"))
        "cannot read 'vae.json'"
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return without_folders((lines or [""])[0])[:LONGEST_TEXT]


def failure(error: Exception) -> Drawn:
    """A breakdown of the model as what became of the task.

    Args:
        error: What was raised.

    Returns:
        `failed`, which may be tried again and is never scored.
    """
    if is_out_of_memory(error):
        text = "out of memory: ask for a smaller size, or use a smaller model, dtype or offload"
        return Drawn(Outcome.FAILED, stage=OutcomeStage.REQUEST, code=OUT_OF_MEMORY, text=text)
    code = type(error).__name__
    return Drawn(Outcome.FAILED, stage=OutcomeStage.REQUEST, code=code, text=one_line(error))


def bad_input(error: PictureError) -> Drawn:
    """An input that cannot be opened as what became of the task.

    Args:
        error: What `open_inputs` raised.

    Returns:
        `failed` at the input.
    """
    code = str(error.reason) if isinstance(error, BadPictureError) else None
    return Drawn(Outcome.FAILED, stage=OutcomeStage.INPUT, code=code, text=one_line(error))


def unsupported(stage: OutcomeStage, code: str, text: str) -> Drawn:
    """A task that a system does not take.

    Args:
        stage: Whether the task or one of its inputs is the trouble.
        code: What it is, in a word.
        text: What it is, in a sentence.

    Returns:
        `unsupported`, which is never scored.
    """
    return Drawn(Outcome.UNSUPPORTED, stage=stage, code=code, text=text)
