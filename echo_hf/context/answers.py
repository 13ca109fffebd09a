"""The declared shape of an extraction: bounded lists, and posts named by the numbers shown."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

LONGEST_PROMPT = 12_000
LONGEST_FEEDBACK = 4000
MOST_POSTS = 256  # of a part of a thread: no part shows more
MOST_SAMPLES = MOST_POSTS

Quality = Literal["Benchmark", "Analysis", "Trash"]


class PostFeedback(BaseModel):
    """What one post says about the result."""

    model_config = ConfigDict(extra="ignore")

    post: int
    feedback: Annotated[str, Field(max_length=LONGEST_FEEDBACK)]


class SampleAnswer(BaseModel):
    """One task, the posts that show it, and what was said about it."""

    model_config = ConfigDict(extra="ignore")

    prompt: Annotated[str, Field(max_length=LONGEST_PROMPT)]
    quality: Quality
    posts: Annotated[list[int], Field(max_length=MOST_POSTS)]
    feedback: Annotated[list[PostFeedback], Field(max_length=MOST_POSTS)] = []


class ExtractAnswer(BaseModel):
    """The samples of one reply tree, or of one part of it."""

    model_config = ConfigDict(extra="ignore")

    samples: Annotated[list[SampleAnswer], Field(max_length=MOST_SAMPLES)]
