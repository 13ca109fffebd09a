"""Records of Every Eval Ever, schema 0.3.0: one of each system, and its samples beside it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from echo_hf._infra.atomic import write_json
from echo_hf.config.checks import AnsweredBy
from echo_hf.config.judges import JudgeConfig
from echo_hf.config.systems import SystemConfig
from echo_hf.hub.manifest import SPLIT, toolkit_version
from echo_hf.hub.run_tables import Result
from echo_hf.judging.rate import rubric_prompt
from echo_hf.judging.run_tables import read_table
from echo_hf.metrics.names import BETTER, HIGHER, TEXT_RENDERING, TITLES
from echo_hf.report.export.export import FORMATS, ExportedRun, slug
from echo_hf.scores.board import METRIC
from echo_hf.scores.rating_table import RUBRIC
from echo_hf.scores.votes import compare, points_of
from echo_hf.tables import RATINGS

Json = dict[str, Any]
Shares = Mapping[tuple[str, str], float]
VERSION = "0.3.0"
BOUNDS: Mapping[str, tuple[float, float]] = {
    METRIC: (0, 1),
    TEXT_RENDERING: (0, 1),
    "face_identity": (-1, 1),
}
UNITS = {METRIC: "proportion", TEXT_RENDERING: "proportion", "color_shift": "levels"}
RUBRICS = {METRIC: RUBRIC, TEXT_RENDERING: TEXT_RENDERING}
# Where a model computes, by adapter or engine; of others nobody can tell.
PLACES = {
    **dict.fromkeys(("anole", "diffusers", "transformers", "vllm"), "self_deployed"),
    "google": "externally_managed",
}


@FORMATS.register("every-eval-ever")
def every_eval_ever(run: ExportedRun, folder: Path) -> None:
    """`data/BENCHMARK/DEVELOPER/MODEL/UUID.json`, and the samples in `UUID_samples.jsonl`."""
    moment, results = str(int(time.time())), run.data.results
    prompts, shares = _prompts(run), {one: _shares(run, one) for one in run.data.splits}
    for system in run.data.systems:
        model = _model(system, results.system_models, run.config.systems)
        rows = [one for one in results.results if one.system == system and one.value is not None]
        if not rows:
            continue
        key = f"{slug(run.name)}/{model['id']}/{moment}"
        maker = slug(model.get("developer"))
        ours, theirs = map(_letters, (run.organization, model.get("developer")))
        known = "first_party" if ours and ours == theirs else "third_party"
        record = {
            "schema_version": VERSION,
            "evaluation_id": key,
            "retrieved_timestamp": moment,
            "source_metadata": {
                "source_name": "echo-hf",
                "source_type": "evaluation_run",
                "source_organization_name": run.organization or "unknown",
                "evaluator_relationship": known if run.organization else "other",
            },
            "eval_library": {"name": "echo-hf", "version": toolkit_version()},
            "model_info": model,
            "evaluation_results": [_result(run, row, prompts) for row in rows],
        }
        digest = hashlib.sha256(f"{key} {system}".encode("utf-8", "replace")).digest()
        place = Path("data", slug(run.name), maker, slug(model["id"].rpartition("/")[2]))
        stem = place / str(UUID(bytes=digest[:16], version=4))
        (folder / place).mkdir(parents=True, exist_ok=True)
        about = {"schema_version": VERSION, "evaluation_id": key, "model_id": model["id"]}
        lines = [{**about, **one} for one in _instances(run, system, shares)]
        if lines:
            text = "".join(f"{json.dumps(one)}\n" for one in lines)
            (folder / f"{stem}_samples.jsonl").write_text(text, "utf-8")
            record["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": f"{stem}_samples.jsonl",
                "hash_algorithm": "sha256",
                "checksum": hashlib.sha256(text.encode()).hexdigest(),
                "total_rows": len(lines),
            }
        write_json(folder / f"{stem}.json", record)


def _letters(name: str | None) -> str:
    return "".join(filter(str.isalnum, (name or "").casefold()))


def _model(
    name: str, known: Mapping[str, AnsweredBy], configs: Iterable[SystemConfig | JudgeConfig]
) -> Json:
    """A system or judge, with what its config and its rows say of it."""
    model = known.get(name, AnsweredBy())
    config = next((one for one in configs if one.name == name), None)
    kind = config.engine.kind if isinstance(config, JudgeConfig) else config and config.adapter
    place = PLACES.get(kind or "", "unknown")
    told = {"name_in_run": name, "kind": kind, "status": model.status, "paper": model.stands_for}
    called = model.model or name
    is_open = place == "self_deployed" and "/" in called
    return {
        "name": name,
        "id": called if "/" in called else f"{slug(model.developer)}/{called}",
        **({"developer": model.developer} if model.developer else {}),
        "additional_details": {
            "deployment_type": place,
            "model_availability": "open_weights" if is_open else "unknown",
            **{key: value for key, value in told.items() if value},
        },
    }


def _prompts(run: ExportedRun) -> dict[tuple[str, str], str]:
    """By judge and rubric the instructions of its ratings; of others than the config's a digest."""
    asked = [(judge, rubric) for judge in run.config.judges for rubric in judge.rubrics]
    every = (rubric_prompt(*one).text for one in asked)
    texts = {hashlib.sha256(text.encode()).hexdigest(): text for text in every}
    table = read_table(run.data.images.root.parent, RATINGS) or RATINGS.empty()
    return {
        (row["judge"], row["rubric"]): texts.get(digest, f"sha256:{digest}") if digest else ""
        for row in table.select(["judge", "rubric", "prompt_digest"]).to_pylist()
        for digest in [row["prompt_digest"]]
    }


def _result(run: ExportedRun, row: Result, prompts: Mapping[tuple[str, str], str]) -> Json:
    samples = run.data.results.details[row.split].samples
    lowest, highest = BOUNDS.get(row.metric, (0, "Infinity"))
    measured: Json = {
        "metric_id": f"echo.{row.metric}",
        "metric_name": f"{TITLES.get(row.metric, 'Win rate')} ({row.protocol})",
        "metric_kind": row.metric,
        **({"metric_unit": UNITS[row.metric]} if row.metric in UNITS else {}),
        "metric_parameters": {"protocol": row.protocol},
        "lower_is_better": BETTER.get(row.metric, HIGHER) != HIGHER,
        "score_type": "continuous",
        "min_score": lowest,
        "max_score": highest,
    }
    told = row.definition if isinstance(row.definition, dict) else {}
    voters, rubric = told.get("judges"), RUBRICS.get(row.metric)
    every = {judge: text for (judge, by), text in prompts.items() if by == rubric}
    said = {
        judge: every[judge] for judge in every if not isinstance(voters, list) or judge in voters
    }
    if said:
        jury = run.data.results.judge_models, run.config.judges
        voted = {METRIC: "majority_vote"}.get(row.metric, "average")
        measured["llm_scoring"] = {
            "judges": [{"model_info": _model(judge, *jury)} for judge in sorted(said)],
            "input_prompt": "\n\n".join(sorted({*said.values()})),
            # The published protocol asks one judge after the other, which has no name here.
            **({"aggregation_method": voted} if row.protocol == "corrected" else {}),
        }
    uncertainty: Json = {"num_samples": samples if row.metric == METRIC else row.n or 0}
    if row.low is not None and row.high is not None:
        ends = {"lower": row.low, "upper": row.high, "confidence_level": 0.95}
        uncertainty["confidence_interval"] = ends
    return {
        "evaluation_result_id": f"{row.split}/{row.metric}/{row.protocol}",
        "evaluation_name": f"{run.name} {row.split}",
        "source_data": _dataset(run, row.split, samples),
        "metric_config": measured,
        "score_details": {
            "score": row.value,
            "details": {"definition": json.dumps(told, sort_keys=True)},
            "uncertainty": uncertainty,
        },
    }


def _dataset(run: ExportedRun, split: str, samples: int) -> Json:
    repo, revision = run.on_hub or (None, None)
    digest = (run.data.results.benchmark.digests or {}).get(split)
    told = {"config": split, "revision": revision, "content_sha256": digest}
    place = {"hf_repo": repo, "hf_split": SPLIT, "samples_number": samples} if repo else {}
    return {
        "dataset_name": run.name,
        "source_type": "hf_dataset" if repo else "other",
        **place,
        "additional_details": {key: value for key, value in told.items() if value},
    }


def _shares(run: ExportedRun, split: str) -> Shares:
    """By sample and system the share of the points that it wins there from the others."""
    rows = [
        {**vars(each), "sample_id": one.id, "rating": each.value}
        for one in run.data.of_split(split)
        for each in run.data.ratings.get(one.id, ())
        if each.rubric == RUBRIC
    ]
    found = dict[tuple[str, str], float]()
    if rows:
        compared = compare(rows, protocol=run.data.results.protocol)
        systems = compared.table.systems
        for at, sample in enumerate(compared.table.samples):
            won, count = points_of(compared.verdicts[:, [at]], len(systems))
            for system, points, of in zip(systems, won.sum(axis=1), count.sum(axis=1), strict=True):
                if of:
                    found[sample, system] = float(points / of)
    return found


def _instances(run: ExportedRun, system: str, shares: Mapping[str, Shares]) -> Iterator[Json]:
    for sample in run.data.samples:
        output = run.data.outputs.get((sample.id, system))
        share = shares[sample.split].get((sample.id, system))
        if share is None:
            continue
        # The schema has no images.
        image = f"sha256:{output.image}" if output and output.image else ""
        rated = {
            f"rating by {one.judge}, {one.repeat}": f"{one.value:g}"
            for one in run.data.ratings[sample.id]
            if (one.system, one.rubric) == (system, RUBRIC) and one.value is not None
        }
        yield {
            "evaluation_result_id": f"{sample.split}/{METRIC}/{run.data.results.protocol}",
            "evaluation_name": f"{run.name} {sample.split}",
            "sample_id": sample.id,
            "interaction_type": "single_turn",
            "input": {"raw": sample.prompt, "reference": []},
            "output": {"raw": [image]},
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": image,
                    "extraction_method": "llm_judge",
                    "is_terminal": True,
                }
            ],
            # More than half of the points that the outputs of a sample win from each other.
            "evaluation": {"score": share, "is_correct": share > 0.5},
            "metadata": {"inputs": str(len(sample.inputs)), **rated},
        }
