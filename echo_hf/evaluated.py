"""What every config says that systems are measured by: one with posts, or one with a benchmark."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import Field, field_validator

from echo_hf.analysis.options import AnalysisOptions
from echo_hf.config_fields import Name, Section, Words
from echo_hf.judging.config import ApplicabilityConfig, JudgeConfig
from echo_hf.metrics.options import MetricsOptions
from echo_hf.systems.config import SystemConfig

Named = TypeVar("Named", SystemConfig, JudgeConfig)


class Evaluated(Section):
    """The part of a config that measures systems on a benchmark.

    Attributes:
        name: Names the run's folder and, for a benchmark, the release's tag.
        systems: The systems under test: files of `eval_configs/systems`, or their content.
        judges: Who rates their outputs: files of `eval_configs/judges`, or their content.
        applicability: Who says which metric fits which sample; null where nobody is asked.
        metrics: Options of the specialised metrics.
        analysis: How prompts, feedback and activity are analyzed.
        protocol: Whose arithmetic is used where the paper's released code and its text differ.
    """

    name: Name
    systems: tuple[SystemConfig, ...] = ()
    judges: tuple[JudgeConfig, ...] = ()
    applicability: ApplicabilityConfig | None = None
    metrics: MetricsOptions = MetricsOptions()
    analysis: AnalysisOptions = AnalysisOptions()
    protocol: Literal["published", "corrected"] = "corrected"

    @field_validator("systems", "judges")
    @classmethod
    def _distinct(cls, named: tuple[Named, ...]) -> tuple[Named, ...]:
        names = [one.name for one in named]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two are called {twice!r}: expected a name for each")
        return named


class Evaluation(Evaluated):
    """Systems on a benchmark that is there already.

    Attributes:
        benchmark: Folder of a release, or `ORGANISATION/NAME@TAG` on the Hub.
    """

    benchmark: Annotated[Words, Field(min_length=1)]
