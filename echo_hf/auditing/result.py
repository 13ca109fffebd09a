"""All that an audit says of a judge, as `audit.json` holds it."""

from __future__ import annotations

from dataclasses import asdict
from statistics import fmean
from typing import Any

import pyarrow as pa

from echo_hf.auditing.checks import checks_of, noise_of, ratings_of
from echo_hf.auditing.honeypots import Honeypot
from echo_hf.judging.asking import Answered
from echo_hf.judging.config import JudgeConfig
from echo_hf.judging.rating import Scale
from echo_hf.scores.scale_use import scale_use


def audit_of(judge: JudgeConfig, answered: Answered, ratings: pa.Table | None) -> dict[str, Any]:
    """What is found of a judge.

    Args:
        judge: The judge.
        answered: Its ratings of honeypots.
        ratings: Rows of `RATINGS` of the run, null when there are none yet.

    Returns:
        Its rubric and scale, a check for each honeypot, its noise, how it uses its scale, and the
        honeypots that it failed on; JSON can hold it.
    """
    rows = answered.rows.to_pylist()
    found = ratings_of(rows)
    checks = checks_of(rows, Scale(*judge.scale, decimals=judge.decimals))
    real = found.get(Honeypot.REAL, {})
    return {
        "rubric": answered.rubric,
        "scale": list(judge.scale),
        "digest": answered.digest,
        "outcomes": dict(answered.outcomes),
        "mean_of_real_outputs": fmean(real.values()) if real else None,
        "checks": {name: asdict(check) for name, check in checks.items()},
        "noise": asdict(noise_of(found)),
        "scale_use": _scale_use(judge, answered.rubric, ratings),
        "failed": [name for name, check in checks.items() if check.passed is False],
    }


def _scale_use(judge: JudgeConfig, rubric: str, ratings: pa.Table | None) -> dict[str, Any] | None:
    """How it uses its scale in the run's ratings; null where it has given none."""
    if ratings is None:
        return None
    of_judge = [
        row for row in ratings.to_pylist() if (row["judge"], row["rubric"]) == (judge.name, rubric)
    ]
    if not of_judge:
        return None
    use = scale_use(of_judge, {judge.name: judge.scale[1]}, rubric=rubric)
    return asdict(use[judge.name])
