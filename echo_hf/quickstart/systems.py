"""Four stand-ins for image systems, rated once by `scripts/rate_stand_ins.py`."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf.curate.splits import BENCHMARKS
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.quickstart.run import JUDGE
from echo_hf.quickstart.truth import (
    NO_TRUTH,
    corpus,
    json_lines,
    read_truths,
    written_applicability,
)
from echo_hf.tables import OUTPUTS, RATINGS

SYSTEMS = ("exact_copy", "yellow_tint", "moved_layout", "misspelt_text")
MADE_BY = "echo_hf.quickstart.systems"
RUBRIC = "overall"


def rated(folder: RunFolder) -> None:
    """Keeps the stand-ins' outputs, their ratings and which metrics fit them in a run's folder."""
    samples = pq.read_table(folder.stage("splits") / "kept.parquet")
    drawn = [bool(set(BENCHMARKS) & set(splits)) for splits in samples["splits"].to_pylist()]
    benchmark = samples.filter(pa.array(drawn))
    outputs, ratings = outputs_and_ratings(benchmark, folder.images)
    pq.write_table(outputs, folder.root / "outputs.parquet")
    pq.write_table(ratings, folder.root / "ratings.parquet")
    pq.write_table(written_applicability(benchmark), folder.root / "applicability.parquet")


def outputs_and_ratings(samples: pa.Table, images: ImageStore) -> tuple[pa.Table, pa.Table]:
    """What the stand-ins make of samples, and how close it is to the images that are meant."""
    folder, truths = corpus() / "systems", read_truths()
    drawn = {row["truth"]: row for row in json_lines(folder / "pictures.jsonl")}
    close = {(row["truth"], row["picture"]): row for row in json_lines(folder / "ratings.jsonl")}
    outputs, ratings = [], []
    rows = samples.to_pylist()
    meant = [truth for row in rows if (truth := truths.of(row)) is not None]
    files = dict.fromkeys(drawn[truth][system] for truth in meant for system in SYSTEMS)
    with ThreadPoolExecutor(8) as pool:  # each waits for the disk
        digests = pool.map(lambda file: images.put((corpus() / file).read_bytes()), files)
        kept = dict(zip(files, digests, strict=True))
    for sample in rows:
        truth = truths.of(sample)
        said = {"made_by": "scripts/rate_stand_ins.py", "rates": "the bundled corpus only"}
        split = next((name for name in BENCHMARKS if name in sample["splits"]), None)
        rated = {"judge": JUDGE, "rubric": RUBRIC, "repeat": 0, "split": split}
        rated["provenance"] = json.dumps({**said, "truth": truth})
        for system in SYSTEMS:
            row = {"sample_id": sample["id"], "system": system}
            row["sample_digest"] = sample["sample_digest"]
            if truth is None:
                made = {"outcome": "unsupported", "stage": "input", "code": NO_TRUTH}
                outputs.append({**row, **made, "provenance": json.dumps({"made_by": MADE_BY})})
                ratings.append({**row, **rated, "outcome": "unsupported"})
                continue
            file = drawn[truth][system]
            provenance = json.dumps({"made_by": MADE_BY, "picture": file})
            outputs.append({**row, "image": kept[file], "outcome": "ok", "provenance": provenance})
            rating = {name: close[truth, file][name] for name in ("rating", "explanation")}
            ratings.append({**row, **rated, **rating, "output_sha256": kept[file], "outcome": "ok"})
    return (
        pa.Table.from_pylist(outputs, OUTPUTS.schema),
        pa.Table.from_pylist(ratings, RATINGS.schema),
    )
