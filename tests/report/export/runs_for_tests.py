"""A scored run on disk, with edits, words, two judges, and a system of each kind of outcome."""

from __future__ import annotations

from pathlib import Path

import yaml

from echo_hf.judging.score import score
from echo_hf.tables import OUTPUTS, RATINGS
from tests.judging import run_for_tests as small
from tests.judging.run_for_tests import output, put, rating, stripes, write
from tests.report.run_data_for_tests import WORDS as HOSTILE

GIVEN = stripes((100, 100, 100), (140, 140, 140))
DRAWN = {
    "ash": stripes((90, 90, 90), (150, 150, 150)),
    "birch <b>": stripes((60, 80, 100), (140, 150, 160)),
}
EDITS, WORDS = {"lamp": [GIVEN]}, ("boat", "fox", "tree")
RATED = {"ash": (9, 7, 5, 4), "birch <b>": (8, 7, 6, 2)}
JUDGE = {
    "name": "mira",
    "developer": "Northlight",
    "status": "current",
    "engine": {"kind": "vllm", "model": "northlight/mira-7b"},
}


def scored(folder: Path) -> Path:
    """The config of a run whose ratings are written down here."""
    small.run(folder, EDITS, WORDS)
    config = folder / "evaluation.yaml"
    data = yaml.safe_load(config.read_text("utf-8"))
    config.write_text(yaml.safe_dump({**data, "judges": [JUDGE]}), "utf-8")
    outputs, ratings = [], []
    for system, values in RATED.items():
        image = put(folder, DRAWN[system])
        for name, value in zip(("lamp", *WORDS), values, strict=True):
            inputs = EDITS.get(name, [])
            known = {"sample_digest": small.digest_of(name, inputs)}
            outputs.append(output(name, system, inputs, image=image))
            ratings.append(rating(name, system, value, explanation=HOSTILE[0], **known))
            ratings.append(rating(name, system, value + 1, judge="wren", repeat=1, **known))
    outputs.append(output("boat", "cedar", outcome="refused", text=HOSTILE[1]))
    write(folder, OUTPUTS, outputs)
    write(folder, RATINGS, ratings)
    score(config, runs=folder / "runs", n_boot=50)
    return config
