"""Find out how an engine's model names places: ask it about drawn screenshots with known boxes."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from echo_hf.builder.gold.check import CHECK_FOLDER, advance_progress, read_gold_setting
from echo_hf.builder.gold.posts import make_dataset
from echo_hf.config.checks import EngineChoice
from echo_hf.config.loading import Config
from echo_hf.config.runs import find_runs_folder
from echo_hf.config.sections import Target
from echo_hf.engines.base import RunEngines, abstains
from echo_hf.errors import ConfigError
from echo_hf.images.loader import PixelSize
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import as_source
from echo_hf.pipeline.batch_inference import plan_requests
from echo_hf.pipeline.progress import NullProgress, ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.samples.boxes import Convention, PixelBox, intersection_over_union
from echo_hf.samples.held_boxes import StoredBoxes
from echo_hf.samples.sample import SAMPLES_IN_CONTEXT, sample_digest
from echo_hf.samples.screenshots import Screenshots, ScreenshotsAnswer

# Wide, tall and large, and all sides far from 1,000, to tell thousandths from pixels.
SIZES: tuple[PixelSize, ...] = ((640, 420), (800, 1500), (1760, 1120))
# In parts of the sides: input upper right, output lower left, all numbers different.
INPUT, OUTPUT = (0.58, 0.14, 0.93, 0.34), (0.07, 0.47, 0.66, 0.91)
MIN_SHARED = 0.5  # of the area of drawn and answered boxes, for a convention to count
MIN_LEAD = 0.2  # over the second best
MIN_ANSWERED = 2  # images with an answer
STAGE = Screenshots.name

RelativeBox = tuple[float, float, float, float]


@dataclass(frozen=True)
class BoxesCheck:
    """Which convention an engine's model answers in.

    Attributes:
        engine: Who was asked.
        asked: The convention that it was told, and that its boxes would be read in.
        is_assumed: Whether nobody has said that it is the right one.
        images: How many images were drawn.
        answered: How many of them it answered with a box.
        shared: Of each convention, the share of their area that drawn boxes have in common with
            those that were answered, if they are read so; the mean over images.
        convention: The one in which it answers; null where it cannot be told.
    """

    engine: EngineChoice
    asked: str
    is_assumed: bool
    images: int
    answered: int
    shared: Mapping[str, float]
    convention: str | None


def check_boxes(
    config: Config | Path | str | None = None,
    *,
    engine: EngineChoice | None = None,
    runs: Path | str | None = None,
    offline: bool = False,
    watch: ProgressListener | None = None,
) -> BoxesCheck:
    """Ask an engine about drawn screenshots as `screenshots` would, and compare its boxes."""
    setting, watch = read_gold_setting(config, engine, None)[0], watch or NullProgress()
    name = str(setting.stages.get_engine(STAGE))
    folder = RunFolder(find_runs_folder(setting, runs) / CHECK_FOLDER / setting.name)
    with (
        folder.lock(),
        RunEngines(setting.engines) as engines,
        closing(folder.open_store()) as store,
    ):
        stage_engine = engines.use(name)
        if abstains(stage_engine.signature()):
            raise ConfigError(
                f"engine {setting.engines[name].kind!r} of stage {STAGE!r} is no model, and draws "
                "no boxes of its own: name another one with --engine"
            )
        stage = Screenshots.from_config(setting, folder.images)
        target = setting.target
        screenshots = [draw_screenshot(size, target) for size in SIZES]
        samples = [build_sample(data, folder.images, target) for data in screenshots]
        rows = make_dataset(stage.inputs, samples)
        if stage_engine.stored and not offline:
            request_plan = plan_requests(stage, rows, stage_engine, store)
            watch.report_start(STAGE, request_plan.calls, request_plan)
        result = run_stage(
            stage,
            rows,
            engine=stage_engine,
            store=store,
            offline=offline,
            progress=partial(advance_progress, watch, STAGE),
        )
        watch.report_result(result)
        answers = as_source(stage_engine, store)
        stage = stage.answered_by(answers)
        requests = [request for requests in stage.requests(rows.data.table) for request in requests]
        frames, parsed_answers = stage.frames, answers.read(requests)
    per_image = [
        measure_shared_areas(StoredBoxes.from_answer(frames, size, answer))
        for size, answer in zip(SIZES, parsed_answers, strict=True)
        if isinstance(answer, ScreenshotsAnswer) and (answer.inputs or answer.outputs)
    ]
    means = {
        way: sum(areas[way] for areas in per_image) / max(len(per_image), 1) for way in Convention
    }
    best, second, *_ = sorted(means, key=means.__getitem__, reverse=True)
    is_clear = (
        len(per_image) >= MIN_ANSWERED
        and means[best] >= max(MIN_SHARED, means[second] + MIN_LEAD)
        and all(max(areas, key=areas.__getitem__) == best for areas in per_image)
    )
    return BoxesCheck(
        setting.engines[name],
        str(frames.convention),
        frames.is_assumed,
        len(SIZES),
        len(per_image),
        {str(way): mean for way, mean in means.items()},
        str(best) if is_clear else None,
    )


def place_box(part: RelativeBox, size: PixelSize) -> PixelBox:
    left, top, right, bottom = (round(a * b) for a, b in zip(part, size * 2, strict=True))
    return left, top, right, bottom


def measure_shared_areas(boxes: StoredBoxes) -> dict[Convention, float]:
    """Return for each convention how much of their area drawn and answered boxes have in common."""
    areas = {}
    for convention in Convention:
        frame = boxes.frame(convention)
        places = [frame.to_original(box) for box in (*boxes.inputs, *boxes.outputs)]
        rounded = [(round(a), round(b), round(c), round(d)) for a, b, c, d in places]
        shares = [
            max(intersection_over_union(place_box(part, boxes.original), box) for box in rounded)
            for part in (INPUT, OUTPUT)
        ]
        areas[convention] = sum(shares) / len(shares)
    return areas


def draw_screenshot(size: PixelSize, target: Target) -> bytes:
    """Draw a conversation with one input and one output image, each as large as its part."""
    image = Image.new("RGB", size, (248, 248, 250))
    brush, height = ImageDraw.Draw(image), size[1]
    font = ImageFont.load_default(max(12, height // 40))
    captions = (
        (0.03, 0.03, target.chat_window or target.name),
        (INPUT[0], INPUT[1] - 0.05, "You: my picture"),
        (INPUT[0], INPUT[3] + 0.02, "You: make it blue"),
        (OUTPUT[0], OUTPUT[1] - 0.05, f"{target.name}: here it is"),
    )
    for left, top, caption in captions:
        brush.text((left * size[0], top * height), caption, (40, 40, 46), font)
    for part, color in ((INPUT, (214, 120, 40)), (OUTPUT, (40, 90, 200))):
        left, top, right, bottom = place_box(part, size)
        brush.rectangle((left, top, right - 1, bottom - 1), color, (20, 20, 20), 2)
        middle, radius = ((left + right) / 2, (top + bottom) / 2), (bottom - top) / 4
        brush.regular_polygon((*middle, radius), 5, fill=(245, 235, 200))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def build_sample(data: bytes, images: ImageStore, target: Target) -> dict[str, Any]:
    """Build a sample that has only a screenshot."""
    digest = images.put(data)
    url = f"https://boxes.example/{digest[:16]}"
    picture = {"sha256": digest, "url": None, "alt_text": None, "same_picture_of": None}
    post = {
        "url": url,
        "parent": -1,
        "author": None,
        "text": None,
        "missing": None,
        "pictures": [picture],
    }
    return {
        **dict.fromkeys(SAMPLES_IN_CONTEXT.columns),
        "id": digest[:22],
        "post_id": digest[:16],
        "post_urls": [url],
        "target": target.name,
        "prompt": "make it blue",
        "prompt_modified": False,
        "prompt_fill_blank": False,
        "quality": "Analysis",
        "community_feedback": [],
        "input_images": [],
        "output_images": [],
        "screenshot": digest,
        "is_screenshot": False,
        "input_bboxs": [],
        "output_bboxs": [],
        "review": [],
        "doubts": [],
        "dehydrated": False,
        "context": [post],
        "sample_digest": sample_digest("make it blue", ()),
        "provenance": "{}",
    }
