"""A run whose judge answered a kept check, with an image of its own color for each system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from echo_hf.systems.checks import Check, write_checks
from echo_hf.tables import OUTPUTS, RATINGS
from tests.apps.rank.ranked_run import HOSTILE, drawing
from tests.judging.run_for_tests import output, put, rating, root, run, stripes, write
from tests.judging.test_failure_rates import certificate
from tests.systems.test_checks import make

SYSTEMS = ("zorblatt", "quixel")
INPUT = stripes((1, 2, 3), (9, 9, 9))
CHECK = "cast@1"


def kept_check(**fields: Any) -> Check:
    return make(status="kept", certificates=[certificate("mira")], **fields)


def labelled_run(
    folder: Path, samples: int = 40, *, checks: tuple[Check, ...] = (kept_check(),), every: int = 4
) -> Path:
    """A judge says yes to every fourth output; the last sample is an edit with hostile words."""
    names = [f"word{number:02}" for number in range(samples)]
    config = run(folder, {HOSTILE: [INPUT]}, names)
    outputs, ratings = [], []
    for number, name in enumerate([*names, HOSTILE]):
        inputs = [INPUT] if name == HOSTILE else []
        for system in SYSTEMS:
            image = put(folder, drawing(system) if number % 2 else stripes((number, 5, 5)))
            outputs.append(output(name, system, inputs, image=image))
            values = {"rubric": CHECK, "sample_digest": None, "output_sha256": image}
            ratings.append(rating(name, system, float(number % every == 0), **values))
    write(folder, OUTPUTS, outputs)
    write(folder, RATINGS, ratings)
    write_checks(root(folder), checks)
    return config
