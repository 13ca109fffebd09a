"""What each stage would send to a model about one small invented thread, made readable.

The files in `tests/golden` are these requests as they were when somebody last looked at them:
`scripts/write_requests.py` writes them. Feedback has a second one, for the phrase, roles one for an
image that is not there, and relevance one about several posts; safety has one for each form of a
guard, and judges have one for each rubric, each form of a rating, and each set of metrics.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel

from echo_hf.collect.relevance import Relevance
from echo_hf.config.checks import EngineChoice
from echo_hf.config.evaluation import ApplicabilityConfig, JudgeConfig
from echo_hf.config.rubrics import RUBRICS
from echo_hf.config.sections import BUILT_IN_STAGES, Target, asks_model
from echo_hf.curate.feedback import Feedback
from echo_hf.curate.safety import FORMS, Safety
from echo_hf.engines.base import ImageRef, Request
from echo_hf.images.store import ImageStore
from echo_hf.judging.applicability import Applicability, build_applicability_rows
from echo_hf.judging.compare import Compare, build_pairs
from echo_hf.judging.rate import OutputsToRate, Rate
from echo_hf.pipeline.answers import Failure, NoAnswers
from echo_hf.pipeline.packing import pack_requests
from echo_hf.pipeline.stage import ModelStage
from echo_hf.pipeline.stage_order import load_stage_class
from echo_hf.samples.extract import Extract, ExtractAnswer
from echo_hf.samples.roles import Roles
from echo_hf.samples.screenshots import Screenshots
from echo_hf.samples.tasks import RolesAnswer
from echo_hf.samples.threads import Threads
from echo_hf.systems.base import Task
from echo_hf.systems.rewrite import rewrite_request
from echo_hf.tables import POSTS, Table

FOLDER = Path(__file__).resolve().parent / "golden"
TARGET = Target(
    name="Lumen Image",
    developer="Northlight",
    released="2026-03-02",
    aliases=("lumen", "l-image"),
    others=("Paintbox",),
    chat_window="Lumen Chat",
)
STAGES: Mapping[str, ModelStage] = {
    stage.name: stage
    for stage in (
        Relevance(TARGET),
        Extract(TARGET),
        Roles(TARGET, ImageStore(Path("pictures"))),
        Screenshots(TARGET, ImageStore(Path("pictures"))),
        Feedback(TARGET),
        Safety(TARGET, ImageStore(Path("pictures"))),
    )
}
EXTRACTED = {
    "prompt": "Make my [PET] a knight on a tiny horse, watercolour",
    "quality": "Benchmark",
    "posts": [0, 1],
    "feedback": [{"post": 2, "feedback": "the horse has five legs 😅"}],
}
ENGINE = EngineChoice(kind="vllm", model="org/model")
TOLD_APART = {
    "inputs": [1],
    "outputs": [2],
    "posts": [0, 1],
    "prompt_fill_blank": [{"placeholder": "[PET]", "value": "parrot"}],
}


# A task, as a system under test is given it.
TASK = Task(
    sample_id="s1",
    sample_digest="d1",
    split="image_to_image",
    prompt="Put the parrot of the first picture on the horse of the second",
    inputs=tuple(
        ImageRef(hashlib.sha256(name.encode()).hexdigest()) for name in ("parrot", "horse")
    ),
)
# Who asks a model without being a stage.
OTHERS = ("rewrite",)
# 320 x 384 pixels, which is sent as 308 x 392.
SCREENSHOT = Path(__file__).resolve().parents[1] / "echo_hf/quickstart/pictures/chat_ramen.png"


COUNTS_PIXELS = NoAnswers(
    {"model": "Qwen/Qwen2.5-VL-32B-Instruct", "pixels": [28, 3136, 1_003_520]}
)


def golden_requests() -> dict[str, Request]:
    relevance, extract, roles, screenshots, feedback, safety = STAGES.values()
    posts = pa.Table.from_pylist(list(_posts()), schema=POSTS.schema)
    threads = Threads(keep=(5,))(posts)
    asked = _next(threads, extract.inputs)
    found = ExtractAnswer.model_validate({"samples": [EXTRACTED]})
    samples = _next(extract.finish(asked, [[found]]), roles.inputs)
    seen = RolesAnswer.model_validate({"samples": [TOLD_APART]})
    shown = _next(roles.finish(samples, [[seen]]), feedback.inputs)
    tables = ((relevance, posts), (extract, asked), (roles, samples), (feedback, shown))
    requests = {stage.name: stage.requests(table)[0][0] for stage, table in tables}
    parts: dict[str, Any] = {"target": TARGET, "images": ImageStore(Path("pictures"))}
    for name in filter(asks_model, BUILT_IN_STAGES):  # of those that are not here: about samples
        if name not in STAGES:
            other: Any = load_stage_class(name)
            names = {each.name for each in fields(other)} & parts.keys()
            own = {each: parts[each] for each in names}
            requests[name] = other(**own).requests(shown)[0][0]
    packed = replace(relevance, posts_per_request=16).requests(posts)
    requests["relevance_packed"] = pack_requests([request for row in packed for request in row])
    requests["feedback_phrase"] = feedback.requests(shown)[0][-1]
    requests["roles_absent"] = _about_absent(roles, samples)
    requests["screenshots"] = _about_screenshot(screenshots, shown)
    requests["rewrite"] = rewrite_request(TASK, 4000)  # as usual
    return {**requests, **_to_guards(safety, shown), **_to_judges()}


def _judge(mode: str, **more: Any) -> JudgeConfig:
    return JudgeConfig(
        name="mira", developer="Northlight", status="current", engine=ENGINE, mode=mode, **more
    )


def _to_judges() -> dict[str, Request]:
    given, made = (hashlib.sha256(name.encode()).hexdigest() for name in ("parrot", "knight"))
    shown = {digest: ImageRef(digest) for digest in (given, made)}
    prompt = EXTRACTED["prompt"]
    task = Task("s", "d", "image_to_image", prompt, (shown[given],))
    words = Task("t", "d", "text_to_image", prompt)
    images = {"amber": made, "birch": given}
    outputs = [{"system": name, "draw": 0, "image": image} for name, image in images.items()]
    requests = {}
    for rubric, mode in (
        ("overall", "text"),
        ("overall", "structured"),
        ("text_rendering", "text"),
    ):
        judge = _judge(mode)
        one = OutputsToRate({"s": outputs[:1]}, (task,), {}).build_rows(judge, lambda _: True)
        stage = Rate(judge, "model_budget", shown, rubric, RUBRICS.find(rubric), "corrected")
        name = f"judge_{rubric}" if mode == "text" else f"judge_{rubric}_{mode}"
        ((requests[name],),) = stage.requests(one.with_format("arrow")[:])
    for name, mode in (("judge_pairwise", "text"), ("judge_pairwise_structured", "structured")):
        judge = _judge(mode, pairwise={"share": 1})
        pair = build_pairs(judge, OutputsToRate({"s": outputs}, (task,), {})).with_format("arrow")[
            :
        ]
        requests[name] = Compare(judge, "model_budget", shown).requests(pair)[0][0]
    fitting = Applicability(ApplicabilityConfig(engine=ENGINE), shown)
    (edit, *_), (drawing, *_) = fitting.requests(
        build_applicability_rows([task, words]).with_format("arrow")[:]
    )
    return {**requests, "applicability_edit": edit, "applicability_words": drawing}


def _to_guards(stage: ModelStage, samples: pa.Table) -> dict[str, Request]:
    every = {name: replace(stage, form=name) for name in FORMS}  # type: ignore[call-arg]
    asked = {f"safety_{name}": one.requests(samples)[0][-1] for name, one in every.items()}
    return {"safety": asked.pop("safety_instructed"), **asked}


@dataclass(frozen=True)
class OneAnswer:
    """The same answer to every request."""

    answer: BaseModel
    signature: Mapping[str, Any] = field(default_factory=dict)

    def read(self, requests: Sequence[Request]) -> list[BaseModel | Failure]:
        return [self.answer for _ in requests]


def _about_absent(stage: ModelStage, samples: pa.Table) -> Request:
    rows = [{**row, "prompt": "A stamp of the parrot in the photo"} for row in samples.to_pylist()]
    told = {"inputs": [], "outputs": [1], "posts": [0]}
    asking = stage.answered_by(OneAnswer(RolesAnswer.model_validate({"samples": [told]})))
    return asking.requests(pa.Table.from_pylist(rows, schema=samples.schema))[0][-1]


def _about_screenshot(stage: ModelStage, samples: pa.Table) -> Request:
    with tempfile.TemporaryDirectory() as folder:
        store = ImageStore(Path(folder))
        digest = store.put(SCREENSHOT.read_bytes())
        stage = replace(stage, images=store, answers=COUNTS_PIXELS)  # type: ignore[call-arg]
        rows = [{**row, "screenshot": digest} for row in samples.to_pylist()]
        return stage.requests(pa.Table.from_pylist(rows, schema=samples.schema))[0][0]


def rendered(request: Request) -> str:
    return "".join(_lines(request))


def write(folder: Path = FOLDER) -> None:
    folder.mkdir(exist_ok=True)
    for name, request in golden_requests().items():
        (folder / f"{name}.txt").write_text(rendered(request), "utf-8")
        print(f"wrote: {name}.txt")


def _lines(request: Request) -> Iterator[str]:
    for message in request.messages:
        yield f"===== {message.role} =====\n"
        for part in message.parts:
            image = isinstance(part, ImageRef)
            yield f"<picture {part.sha256[:12]}>\n" if image else f"{part.text}\n"


def _posts() -> Iterator[dict[str, Any]]:
    texts = (
        ("mira_draws", f"{EXTRACTED['prompt']}\n\nWhat is yours?", "parrot photo"),
        ("mira_draws", "@mira_draws my parrot!", "parrot knight"),
        ("ovi.art", "the horse has five legs 😅", None),
    )
    for number, (author, text, image) in enumerate(texts, 1):
        digest = image and hashlib.sha256(image.encode()).hexdigest()
        yield {
            "url": f"https://x.com/i/status/{number}",
            "parent_url": "https://x.com/i/status/1" if number > 1 else None,
            "author": author,
            "text": text,
            "keywords": ["lumen"],
            "pictures": [{"sha256": digest, "url": None, "alt_text": image}] if image else [],
            "relevance": {"score": 5, "note": None},
        }


def _next(table: pa.Table, declared: Table) -> pa.Table:
    return table.filter(pc.equal(table["_status"], "kept")).select(list(declared.columns))
