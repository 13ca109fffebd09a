"""Results that another program reports: a worker's answer, a line of a manifest, a file."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from echo_hf.config.checks import Section, Whole, first_error
from echo_hf.config.systems import Dollars
from echo_hf.errors import ImageError
from echo_hf.images.store import MOST_BYTES, check_image
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, JsonMapping, failed

# Where a task ended whose teller does not say so.
ENDED = {
    Outcome.REFUSED: OutcomeStage.INPUT,
    Outcome.NO_IMAGE: OutcomeStage.ANSWER,
    Outcome.FAILED: OutcomeStage.REQUEST,
    Outcome.UNSUPPORTED: OutcomeStage.TASK,
    Outcome.RETIRED: OutcomeStage.PREFLIGHT,
}
Model = TypeVar("Model", bound=BaseModel)
Short = Annotated[str, Field(max_length=200)]


class ExternalResult(Section):
    """What became of a task, in somebody else's words."""

    outcome: Outcome = Outcome.OK
    stage: OutcomeStage | None = None
    code: Short | None = None
    text: str | None = None
    seed: Annotated[Whole, Field(ge=0, lt=2**63)] | None = None
    revised_prompt: str | None = None
    model: Short | None = None
    cost_usd: Dollars | None = None
    details: JsonMapping = {}  # noqa: RUF012 - a Section is frozen

    def result(self, image: bytes | None, details: Mapping[str, Any]) -> GenerationResult:
        """What became of the task; `ok` ends nowhere, and what is retired was never asked."""
        usual = ENDED.get(self.outcome)
        is_told = self.stage and self.outcome not in (Outcome.OK, Outcome.RETIRED)
        return GenerationResult(
            outcome=self.outcome,
            image=image,
            stage=self.stage if is_told else usual,
            code=self.code,
            text=self.text,
            seed=self.seed,
            revised_prompt=self.revised_prompt,
            model_reported=self.model,
            cost_usd=self.cost_usd,
            details=details,
        )


def read_told(line: bytes, model: type[Model], place: str) -> Model:
    try:
        return model.model_validate_json(line)
    except ValidationError as error:
        if error.errors()[0]["type"] in ("json_invalid", "model_type"):
            raise ValueError(f"{place} is {line[:80]!r}: expected a JSON object") from None
        raise ValueError(first_error(error, place, model)) from None


class BadFileError(ImageError):
    """A file that is not taken as an image, and the code of the task whose image it was to be."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code

    def drawn(self) -> GenerationResult:
        return failed(str(self), self.code, OutcomeStage.ANSWER)


def read_image(path: Path, folder: Path) -> bytes:
    """An image in a folder, wherever its links lead."""
    data = read_bytes(path, folder)
    try:
        check_image(data)
    except ImageError as error:
        # Of an oversized file only the beginning was read: the number of its bytes is not known.
        said = f"more than {MOST_BYTES} bytes" if len(data) > MOST_BYTES else str(error)
        raise BadFileError("bad_picture", f"{path.name!r}: {said}") from None
    return data


def read_bytes(path: Path, folder: Path) -> bytes:
    """The beginning of a regular file inside a folder."""
    try:
        place = path.resolve()
        if not place.is_relative_to(folder.resolve()):
            raise BadFileError("outside", f"{path.name!r} leads out of its folder")
        if not stat.S_ISREG(place.stat().st_mode):  # to read a pipe is to wait for ever
            raise BadFileError("no_regular_file", f"{path.name!r} is not a regular file")
        with place.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except (OSError, RuntimeError, ValueError) as error:  # such as of a circle of links
        said = getattr(error, "strerror", None) or type(error).__name__
        raise BadFileError("no_picture_file", f"{path.name!r} cannot be read: {said}") from None
