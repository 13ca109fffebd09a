"""The declared shape of an answer about a sample's task and what was said about its result."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_COMMENTS = 64  # of one request: no request shows more
LONGEST_KEYWORD = 60

Kind = Literal["task", "probe"]
Task = Literal[
    "text_to_image",
    "text_rendering",
    "edit",
    "style_transfer",
    "sketch_to_image",
    "composition",
    "restoration",
]
Verdict = Literal["success", "failure", "mixed", "none"]


class JudgedComment(BaseModel):
    """Whether one comment speaks of success or failure, and of which failure."""

    model_config = ConfigDict(extra="ignore")

    comment: Annotated[int, Field(ge=0, le=999_999)]
    verdict: Verdict
    keyword: Annotated[str, Field(max_length=LONGEST_KEYWORD)] | None = None


class FeedbackAnswer(BaseModel):
    """What kind of task a sample is, and what each comment says about its result."""

    model_config = ConfigDict(extra="ignore")

    kind: Kind | None = None
    task: Task | None = None
    feedback: Annotated[list[JudgedComment], Field(max_length=MOST_COMMENTS)]
