"""The base of figures that a run keeps as JSON, and how they are read."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from echo_hf.config.checks import first_error
from echo_hf.errors import RunError

FiguresT = TypeVar("FiguresT", bound=BaseModel)


class FigureModel(BaseModel):
    """Base of immutable figures as JSON can hold them, without NaN; later versions may add keys."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False, defer_build=True)


def read_figures(path: Path, model: type[FiguresT], verb: str) -> FiguresT | None:
    """Read a file of figures; null where there is none, an error where it is damaged."""
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        message = first_error(error, str(path), model)
        raise RunError(f"{message}: run `echo-hf {verb}` again") from None
