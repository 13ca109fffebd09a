"""The declared shape of an answer about a screenshot: what was typed, and boxes, all bounded."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from echo_hf.context.answers import LONGEST_PROMPT

MOST_BOXES = 32
LARGEST = 100_000  # no picture has a longer side

Coordinate = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
GivenBox = Annotated[list[Coordinate], Field(min_length=4, max_length=4)]
GivenBoxes = Annotated[list[GivenBox], Field(max_length=MOST_BOXES)]


class ScreenshotsAnswer(BaseModel):
    """What a screenshot shows; the prompt is empty where none was typed, null where unread."""

    model_config = ConfigDict(extra="ignore")

    prompt: Annotated[str, Field(max_length=LONGEST_PROMPT)] | None = None
    inputs: GivenBoxes
    outputs: GivenBoxes
