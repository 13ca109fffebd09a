"""Four drawn stand-ins for image systems; `scripts/rate_stand_ins.py` rated them."""

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
    corpus_folder,
    read_bundled_applicability,
    read_json_lines,
    read_truths,
)
from echo_hf.tables import DRAW, OUTPUTS, RATINGS

SYSTEMS = ("exact_copy", "yellow_tint", "moved_layout", "misspelt_text")
MADE_BY = "echo_hf.quickstart.systems"
RUBRIC = "overall"


def write_stand_in_outputs(folder: RunFolder) -> None:
    """Write the outputs, ratings and applicability of the stand-ins into a run's folder."""
    samples = pq.read_table(folder.stage_folder("splits") / "kept.parquet")
    is_benchmark = [bool(set(BENCHMARKS) & set(splits)) for splits in samples["splits"].to_pylist()]
    benchmark = samples.filter(pa.array(is_benchmark))
    outputs, ratings = make_outputs_and_ratings(benchmark, folder.images)
    pq.write_table(outputs, folder.root / "outputs.parquet")
    pq.write_table(ratings, folder.root / "ratings.parquet")
    pq.write_table(read_bundled_applicability(benchmark), folder.root / "applicability.parquet")


def make_outputs_and_ratings(samples: pa.Table, images: ImageStore) -> tuple[pa.Table, pa.Table]:
    """Make the outputs of the stand-ins, rated by their similarity to the intended images."""
    folder, truths = corpus_folder() / "systems", read_truths()
    files_of = {row["truth"]: row for row in read_json_lines(folder / "pictures.jsonl")}
    rated = {
        (row["truth"], row["picture"]): row for row in read_json_lines(folder / "ratings.jsonl")
    }
    outputs, ratings = [], []
    rows = samples.to_pylist()
    needed = [truth for row in rows if (truth := truths.find_image(row)) is not None]
    files = dict.fromkeys(files_of[truth][system] for truth in needed for system in SYSTEMS)
    with ThreadPoolExecutor(8) as pool:  # each waits for the disk
        digests = pool.map(lambda file: images.put((corpus_folder() / file).read_bytes()), files)
        stored = dict(zip(files, digests, strict=True))
    for sample in rows:
        truth = truths.find_image(sample)
        origin = {"made_by": "scripts/rate_stand_ins.py", "rates": "the bundled corpus only"}
        split = next((name for name in BENCHMARKS if name in sample["splits"]), None)
        common = {"judge": JUDGE, "rubric": RUBRIC, "repeat": 0, "split": split}
        common["provenance"] = json.dumps({**origin, "truth": truth})
        for system in SYSTEMS:
            row = {"sample_id": sample["id"], "system": system, DRAW: 0}
            row["sample_digest"] = sample["sample_digest"]
            if truth is None:
                none = {"outcome": "unsupported", "stage": "input", "code": NO_TRUTH}
                outputs.append({**row, **none, "provenance": json.dumps({"made_by": MADE_BY})})
                ratings.append({**row, **common, "outcome": "unsupported"})
                continue
            file = files_of[truth][system]
            provenance = json.dumps({"made_by": MADE_BY, "picture": file})
            outputs.append(
                {**row, "image": stored[file], "outcome": "ok", "provenance": provenance}
            )
            rating = {name: rated[truth, file][name] for name in ("rating", "explanation")}
            ratings.append(
                {**row, **common, **rating, "output_sha256": stored[file], "outcome": "ok"}
            )
    return (
        pa.Table.from_pylist(outputs, OUTPUTS.schema),
        pa.Table.from_pylist(ratings, RATINGS.schema),
    )
