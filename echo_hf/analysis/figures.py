"""What every part of an analysis is made of: estimates with intervals, or a reason for none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from echo_hf.reasons import NotAnalyzed, Unscored

Found = TypeVar("Found")
Counts = Mapping[str, NonNegativeInt]


class Figures(BaseModel):
    """Figures that JSON can hold: immutable, closed to unknown keys, without NaN or infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Estimate(Figures):
    """A number with its interval at 95 %.

    Attributes:
        value: Null where there is none.
        low: Lower end, null where there is no interval.
        high: Upper end, likewise.
        reason: Why there is no number, or no interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: NotAnalyzed | Unscored | None = None


class Part(Figures, Generic[Found]):
    """One part of an analysis, which stands or falls alone.

    Attributes:
        found: Its figures, null where there are none.
        reason: Why there are none.
        detail: The same in one line, for a person.
        definition: What exactly was computed, with what models and numbers.
    """

    found: Found | None = None
    reason: NotAnalyzed | None = None
    detail: str | None = None
    definition: Mapping[str, Any] = {}
