"""Write records of Every Eval Ever, schema 0.3.0: one for each system, and its samples."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from echo_hf._infra.atomic import write_json
from echo_hf.config.checks import ModelIdentity
from echo_hf.config.rubrics import FIGURES
from echo_hf.hub.manifest import SPLIT, get_version
from echo_hf.hub.run_tables import ResultRow
from echo_hf.judging.rate import adapt_rubric, fill_rubric_prompt
from echo_hf.metrics.base import find_metric, get_better
from echo_hf.report.export import FORMATS, ExportedRun, slug
from echo_hf.report.markup import titled
from echo_hf.scores.rating_table import PROVENANCE, RUBRIC, SCALAR_FORM
from echo_hf.scores.votes import count_votes
from echo_hf.scores.win_rate import METRIC
from echo_hf.systems.run_tables import read_table
from echo_hf.tables import RATINGS

JsonObject = dict[str, Any]
VERSION = "0.3.0"
BOUNDED = ("score_type", "min_score", "max_score")


@FORMATS.register("every-eval-ever")
def write_records(run: ExportedRun, folder: Path) -> None:
    """Write `data/BENCHMARK/DEVELOPER/MODEL/UUID.json`, with samples in `UUID_samples.jsonl`."""
    timestamp, results = str(int(time.time())), run.data.results
    prompts, shares = _read_prompts(run), _compute_shares(run)
    for system in run.data.systems:
        rows = [row for row in results.results if row.system == system and row.value is not None]
        if not rows:
            continue
        model = _describe_model(system, results.system_models)
        key = f"{slug(run.name)}/{model['id']}/{slug(system)}/{timestamp}"
        record = {
            "schema_version": VERSION,
            "evaluation_id": key,
            "retrieved_timestamp": timestamp,
            "source_metadata": {
                "source_name": "echo-hf",
                "source_type": "evaluation_run",
                "source_organization_name": run.organization or "unknown",
                "evaluator_relationship": "other",
            },
            "eval_library": {"name": "echo-hf", "version": get_version()},
            "model_info": model,
            "evaluation_results": [_describe_result(run, row, prompts) for row in rows],
        }
        subfolder = Path("data", slug(run.name), *map(slug, model["id"].rsplit("/", 1)))
        stem = subfolder / str(uuid4())
        (folder / subfolder).mkdir(parents=True, exist_ok=True)
        identity = {"schema_version": VERSION, "evaluation_id": key, "model_id": model["id"]}
        instances = _instances(run, system, shares)
        lines = [json.dumps({**identity, **instance}) + "\n" for instance in instances]
        if lines:
            text = "".join(lines)
            (folder / f"{stem}_samples.jsonl").write_text(text, "utf-8")
            record["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": f"{stem}_samples.jsonl",
                "hash_algorithm": "sha256",
                "checksum": hashlib.sha256(text.encode()).hexdigest(),
                "total_rows": len(lines),
            }
        write_json(folder / f"{stem}.json", record)


def _describe_model(name: str, models: Mapping[str, ModelIdentity]) -> JsonObject:
    model = models.get(name, ModelIdentity())
    model_name = model.model or name
    details = {"name_in_run": name, "status": model.status, "paper": model.stands_for}
    return {
        "name": name,
        "id": model_name if "/" in model_name else f"{slug(model.developer)}/{model_name}",
        **({"developer": model.developer} if model.developer else {}),
        "additional_details": {
            "deployment_type": "unknown",
            "model_availability": "unknown",
            **{key: value for key, value in details.items() if value},
        },
    }


def _read_prompts(run: ExportedRun) -> dict[tuple[str, str], str]:
    """Read the instructions of ratings by judge and rubric; only a digest of unknown ones."""
    config = run.config
    instructions = [
        fill_rubric_prompt(judge, adapt_rubric(judge, config.find_rubric(name))).text
        for judge in config.judges
        for name in judge.rubrics
    ]
    texts = {hashlib.sha256(text.encode()).hexdigest(): text for text in instructions}
    table = read_table(run.data.images.root.parent, RATINGS) or RATINGS.make_empty()
    return {
        (row["judge"], row["rubric"]): texts.get(digest, f"sha256:{digest}") if digest else ""
        for row in table.select(["judge", "rubric", "prompt_digest"]).to_pylist()
        for digest in [row["prompt_digest"]]
    }


def _describe_result(
    run: ExportedRun, row: ResultRow, prompts: Mapping[tuple[str, str], str]
) -> JsonObject:
    samples = run.data.results.details[row.split].samples
    repo, revision = run.on_hub or (None, None)
    digest = (run.data.results.benchmark.digests or {}).get(row.split)
    details = {"config": row.split, "revision": revision, "content_sha256": digest}
    definition = row.definition if isinstance(row.definition, dict) else {}
    metric, used_rubric = find_metric(row.metric), RUBRIC if row.metric == METRIC else None
    if metric is not None and "ratings" in metric.needs:
        used_rubric = metric.rubric
    title = metric.title if metric else "Win rate" if row.metric in FIGURES else titled(row.metric)
    bounds = metric.bounds if metric else (0, 1) if row.metric == METRIC else None
    metric_config: JsonObject = {
        "metric_id": f"echo.{row.metric}",
        "metric_name": f"{title} ({row.protocol})",
        "metric_kind": row.metric,
        "metric_parameters": {"protocol": row.protocol},
        "lower_is_better": get_better(row.metric, [definition]) == "lower",
        **(dict(zip(BOUNDED, ("continuous", *bounds), strict=True)) if bounds else {}),
    }
    voters = definition.get("judges")
    judge_prompts = {}
    for (judge, rubric), text in prompts.items():
        is_voter = not isinstance(voters, list) or judge in voters
        if is_voter and rubric == used_rubric:
            judge_prompts[judge] = text
    if judge_prompts:
        aggregation = "majority_vote" if row.metric == METRIC else "average"
        names, models = sorted(judge_prompts), run.data.results.judge_models
        metric_config["llm_scoring"] = {
            "judges": [{"model_info": _describe_model(name, models)} for name in names],
            "input_prompt": "\n\n".join(sorted({*judge_prompts.values()})),
            # The published protocol asks judges in turn, for which the schema has no name.
            **({"aggregation_method": aggregation} if row.protocol == "corrected" else {}),
        }
    uncertainty: JsonObject = {"num_samples": samples if row.metric == METRIC else row.n or 0}
    if row.low is not None and row.high is not None:
        ends = {"lower": row.low, "upper": row.high, "confidence_level": 0.95}
        uncertainty["confidence_interval"] = ends
    return {
        "evaluation_result_id": f"{row.split}/{row.metric}/{row.protocol}",
        "evaluation_name": f"{run.name} {row.split}",
        "source_data": {
            "dataset_name": run.name,
            "source_type": "hf_dataset" if repo else "other",
            **({"hf_repo": repo, "hf_split": SPLIT, "samples_number": samples} if repo else {}),
            "additional_details": {key: value for key, value in details.items() if value},
        },
        "metric_config": metric_config,
        "score_details": {
            "score": row.value,
            "details": {"definition": json.dumps(definition, sort_keys=True)},
            "uncertainty": uncertainty,
        },
    }


def _compute_shares(run: ExportedRun) -> dict[tuple[str, str], float]:
    """Compute by sample and system the share of points that it wins from the others."""
    shares = dict[tuple[str, str], float]()
    for split in run.data.splits:
        rows = [
            {
                **vars(rating),
                "sample_id": sample.id,
                "rating": rating.value,
                PROVENANCE: SCALAR_FORM if rating.is_scalar else None,
            }
            for sample in run.data.select_split(split)
            for rating in run.data.ratings.get(sample.id, ())
            if rating.rubric == RUBRIC
        ]
        if rows:
            compared = count_votes(rows, protocol=run.data.results.protocol)
            all_shares = compared.compute_shares(compared.verdicts)
            for system, system_shares in zip(compared.table.systems, all_shares, strict=True):
                for sample, share in zip(compared.table.samples, system_shares, strict=True):
                    if not math.isnan(share):
                        shares[sample, system] = float(share)
    return shares


def _instances(
    run: ExportedRun, system: str, shares: Mapping[tuple[str, str], float]
) -> Iterator[JsonObject]:
    for sample in run.data.samples:
        if (share := shares.get((sample.id, system))) is None:
            continue
        output = run.data.outputs.get((sample.id, system))
        # The schema has no images.
        image = f"sha256:{output.image}" if output and output.image else ""
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
            # Correct is what wins more than half of the points of its sample.
            "evaluation": {"score": share, "is_correct": share > 0.5},
            "metadata": {
                f"rating by {rating.judge}, {rating.repeat}": f"{rating.value:g}"
                for rating in run.data.ratings[sample.id]
                if (rating.system, rating.rubric) == (system, RUBRIC) and rating.value is not None
            },
        }
