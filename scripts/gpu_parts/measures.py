"""What is measured in one process: an engine, a system, the metrics."""

from __future__ import annotations

import hashlib
import io
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain, cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench_images import generated, write_model
from datasets import Dataset, concatenate_datasets
from PIL import Image
from pydantic import BaseModel

from echo_hf.builder.build import BuildRun, open_run
from echo_hf.config.evaluation import read_judge
from echo_hf.config.rubrics import OVERALL, RUBRICS
from echo_hf.config.sections import BUILT_IN_STAGES as STAGES
from echo_hf.config.systems import FixedSize, read_system, shipped_config, shipped_configs
from echo_hf.curate.safety import Safety
from echo_hf.engines.base import ImageRef, Message, Request, Text, check_installed
from echo_hf.engines.memory import estimate_memory, gib, measure_gpu_memory
from echo_hf.engines.vllm import VllmEngine, make_sampling, render_conversation
from echo_hf.errors import EngineError, GenerationError
from echo_hf.judging.rate import Rate, load_judge_images, select_outputs
from echo_hf.metrics import InputCache, color_shift, registered, structure_distance
from echo_hf.metrics.structure_distance import (
    BATCH_SIZE,
    LAYER,
    SIZE,
    VitOptions,
    load_vit,
    resize,
    self_similarities,
)
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.answers import Failure, RawText, as_source
from echo_hf.pipeline.batch_inference import fill, iterate_segments
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage import ModelStage
from echo_hf.prompts import Prompt
from echo_hf.quickstart.systems import write_stand_in_outputs
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import Benchmark
from echo_hf.systems.images import open_inputs
from echo_hf.systems.registry import make_system
from echo_hf.tables import POSTS, Outcome, Table
from gpu_parts import models

Item = TypeVar("Item")
PEAK, CACHE, WORKING = "memory at its peak", "memory for requests", "at work"
SAFETY, RATING = "safety", "a judge's rating"
# Letters of an answer that nobody recorded: `safe` or `unsafe` and a code, and a paragraph.
LETTERS = {SAFETY: 8, RATING: 600}
TINY_LETTERS = 8  # at most: each is a step of the model
SPARE_TOKENS = 8
MOST_SECONDS, TINY_SECONDS, SHARE = 8.0, 0.1, 0.4
REQUESTS, FEW, TINY_FEW = 1500, 32, 3
ANSWERS = 5  # before it is killed
SIDE, TINY_SIDE = 1024, 64  # of an image
TINY_SIZE = FixedSize(width=TINY_SIDE, height=TINY_SIDE)
TINY_DRAWING = {"call": {"num_inference_steps": 2}, "dtype": "float32"}


class Row(NamedTuple):
    """A row of the table; `beside` is what it is compared with, `ratio` ours over that."""

    part: str
    measure: str
    found: str
    beside: str = ""
    ratio: float | None = None


class Given(NamedTuple):
    """Where a part writes, of which shape its model is, and when it has to have ended."""

    folder: Path
    tiny: bool
    until: float

    def seconds(self, left: int) -> float:
        """How long one of so many measures may last, each of which is done in two ways."""
        most = TINY_SECONDS if self.tiny else MOST_SECONDS
        return min(most, max(0.0, SHARE * (self.until - time.time()) / left))


class Asking(NamedTuple):
    """A stage, the rows that it asks about, and how long an answer is."""

    stage: ModelStage
    rows: Dataset
    letters: int


@dataclass(frozen=True)
class Copies(ModelStage):
    """What a stage asks about copies of rows, to be answered in letters.

    A copy differs where one post differs from the next, and so do its images: nothing but the
    instructions is computed only once. A model of random weights ends no answer of its own accord.
    """

    name: ClassVar[str] = "copies"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = POSTS
    outputs: ClassVar[Table] = POSTS
    answer: ClassVar[type[BaseModel]] = RawText

    stage: ModelStage
    letters: int
    pixels: int

    @property
    def prompt(self) -> Prompt:
        return self.stage.prompt

    def requests(self, table: pa.Table) -> list[list[Request]]:
        asked = self.stage.answered_by(self.answers) if self.answers else self.stage
        rows = zip(asked.requests(table), table["copy"].to_pylist(), strict=True)
        return [[self._copied(one, copy) for one in row] for row, copy in rows]

    def _copied(self, request: Request, copy: int) -> Request:
        *before, user = request.messages
        mark = Text(f"({copy})")
        parts = (
            one if isinstance(one, Text) else another(one, copy, self.pixels) for one in user.parts
        )
        form = f"[a-z]{{{self.letters}}}"
        messages = (*before, Message(user.role, (mark, *parts)))
        row = f"{request.row}-{copy}"
        return Request(
            request.task, messages, None, self.letters + SPARE_TOKENS, regex=form, row=row
        )

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        """The rows as they were: nothing is made of the answers."""
        del answers
        return table


@cache
def another(image: ImageRef, copy: int, pixels: int) -> ImageRef:
    """The same picture in another file: what follows the end of an image is not read."""
    assert image.file
    data = _enlarged(image.file, pixels) + str(copy).encode()
    digest = hashlib.sha256(data).hexdigest()
    file = image.file.with_name(digest)
    file.write_bytes(data)
    return ImageRef(digest, file)


@cache
def _enlarged(file: Path, pixels: int) -> bytes:
    """The bundled images are small; people post larger ones."""
    with Image.open(file) as opened:
        factor = math.sqrt(pixels / (opened.width * opened.height))
        size = round(opened.width * factor), round(opened.height * factor)
        sink = io.BytesIO()
        opened.convert("RGB").resize(size).save(sink, "JPEG", quality=90)
    return sink.getvalue()


@dataclass
class Noted:
    engine: VllmEngine
    asked: list[Request] = field(default_factory=list)
    stored: ClassVar[bool] = True

    def signature(self) -> Mapping[str, Any]:
        return self.engine.signature()

    def stream(self, requests: Iterable[Request]) -> Iterator[Any]:
        def noted() -> Iterator[Request]:
            for request in requests:
                self.asked.append(request)
                yield request

        return self.engine.stream(noted())


def questions(run: BuildRun) -> dict[str, Asking]:
    """What the stages ask about the bundled corpus, and a judge about what was drawn for it."""
    asked, results = {}, _built(run)
    for name, before in zip(STAGES[1:], results, strict=False):
        stage, engine = run.stage(name), run.engine(name)
        if not isinstance(stage, ModelStage) or engine is None:
            continue
        if isinstance(stage, Safety):
            stage = replace(stage, form="llama_guard")
            asked[name] = Asking(stage, before.dataset, LETTERS[name])
            continue
        table = before.dataset.with_format("arrow")[:]
        requests = stage.answered_by(as_source(engine, None)).requests(table)
        said = engine.stream(one for row in requests for one in row)
        lengths = [len(one.text) for _, one in said if one.text]
        asked[name] = Asking(stage, before.dataset, sum(lengths) // len(lengths))
    return {**asked, RATING: _rating(run)}


def _built(run: BuildRun) -> list[StageResult]:
    results = list(run.results(STAGES[-1]))
    run.release(results)
    return results


def _rating(run: BuildRun) -> Asking:
    judge = read_judge(shipped_configs() / "judges" / "qwen2_5_vl_32b.yaml")
    write_stand_in_outputs(run.folder)
    outputs = pq.read_table(run.folder.root / "outputs.parquet")
    images = run.folder.images
    given = select_outputs(outputs, Benchmark(str(run.folder.release)).tasks(images))
    rows = given.build_rows(judge, lambda _: True)
    digests = {one for row in rows for one in (*row["inputs"], row["output"])}
    shown = load_judge_images(images, digests, "model_budget")
    stage = Rate(judge, "model_budget", shown, OVERALL, RUBRICS.find(OVERALL), "corrected")
    return Asking(stage, rows, LETTERS[RATING])


def copies(asking: Asking, tiny: bool) -> tuple[Copies, Dataset]:
    """A stage, and more rows than there is time for."""
    table = asking.rows.with_format("arrow")[:]
    asked = asking.stage.requests(table)
    table = table.take([at for at, requests in enumerate(asked) if requests])
    rows = [
        Dataset(table.append_column("copy", pa.array([copy] * len(table))))
        for copy in range(-(-REQUESTS // len(table)))
    ]
    pixels, most = (TINY_SIDE**2, TINY_LETTERS) if tiny else (SIDE**2, asking.letters)
    return Copies(asking.stage, min(asking.letters, most), pixels), concatenate_datasets(rows)


def asked_of(stage: Copies, rows: Dataset) -> Iterator[Request]:
    """What a stage asks; the images are written with it."""
    return chain.from_iterable(iterate_segments(stage, rows))


def reader(given: Given) -> Iterator[Row]:
    yield from _engine("reader", models.reader, given)


def guard(given: Given) -> Iterator[Row]:
    yield from _engine("guard", models.guard, given)


def _engine(part: str, make: Callable[[Path, bool], models.MadeUp], given: Given) -> Iterator[Row]:
    check_installed("vllm")
    made = make(given.folder / part, given.tiny)
    yield Row(part, "weights", f"{made.shape.parameters:,}")
    with open_run(shipped_config(), given.folder) as run, VllmEngine(**made.options) as engine:
        asked = {
            name: copies(one, given.tiny)
            for name, one in questions(run).items()
            if (name == SAFETY) == (part == "guard")
        }
        started = time.perf_counter()
        stage, rows = next(iter(asked.values()))
        list(engine.stream(islice(asked_of(stage, rows.select([0])), 1)))
        yield Row(part, "start, with one answer", _seconds(started))
        yield from _memory(part, made, engine)
        few = TINY_FEW if given.tiny else FEW
        for at, (name, (stage, rows)) in enumerate(asked.items()):
            _against_chat(engine, stage, rows.select([0]))  # its form is made ready, for seconds
            began = time.perf_counter()
            _against_chat(engine, stage, rows.select(range(few)))
            took, seconds = (time.perf_counter() - began) / 2, given.seconds(len(asked) - at)
            many = min(len(rows), max(few, int(few * seconds / took)))
            found, beside, ratio = _against_chat(engine, stage, rows.select(range(many)))
            yield Row(part, name, found, beside, ratio)
        started = time.perf_counter()
    yield Row(part, "free", _seconds(started))


def _seconds(started: float) -> str:
    return f"{time.perf_counter() - started:.1f} s"


def _memory(part: str, made: models.MadeUp, engine: VllmEngine) -> Iterator[Row]:
    sized = estimate_memory(engine.options, made.shape, measure_gpu_memory())
    cache = engine._loaded.llm_engine.vllm_config.cache_config
    room = cache.num_gpu_blocks * cache.block_size * sized.request / sized.tokens
    if sized.cache is None or sized.available_memory is None:
        yield Row(part, CACHE, gib(room))
        yield Row(part, PEAK, "", f"--fit: {gib(sized.required_memory)} of a GPU, with 1 request")
        return
    yield Row(part, CACHE, gib(room), f"--fit: {gib(sized.cache)}", room / sized.cache)
    yield Row(part, PEAK, "", f"--fit: {gib(sized.available_memory)}")


def _against_chat(engine: VllmEngine, stage: Copies, rows: Dataset) -> tuple[str, str, float]:
    llm, noted = engine._loaded, Noted(engine)
    for _ in asked_of(stage, rows):
        pass  # nobody waits for images to be written

    def cleared() -> float:
        llm.reset_prefix_cache()
        llm.llm_engine.reset_mm_cache()
        return time.perf_counter()

    with TemporaryDirectory() as folder:
        started = cleared()
        stats = fill(stage, rows, noted, Store(Path(folder) / "answers.sqlite"))
        ours = (stats.usage.prompt + stats.usage.completion) / (time.perf_counter() - started)
    if stats.failures or stats.calls != stats.requests - stats.repeated:
        said = f"{stats.calls:,} calls for {stats.requests:,} requests, failed: {stats.failures}"
        raise EngineError(said)
    started = cleared()
    talks = [render_conversation(one, engine._read_image) for one in noted.asked]
    said = llm.chat(
        talks, [make_sampling(one, engine.options) for one in noted.asked], use_tqdm=False
    )
    tokens = sum(len(one.prompt_token_ids) + len(one.outputs[0].token_ids) for one in said)
    bare = tokens / (time.perf_counter() - started)
    each = f"{stats.usage.prompt / stats.calls:,.0f} + {stats.usage.completion / stats.calls:,.0f}"
    found = f"{ours:,.0f} tokens/s ({stats.calls:,} requests of {each}, {stats.seconds:.1f} s)"
    return found, f"LLM.chat: {bare:,.0f}", ours / bare


def kill(given: Given) -> Iterator[Row]:
    """An engine that is at work when it is killed."""
    check_installed("vllm")
    made = models.reader(given.folder / "kill", given.tiny)
    with (
        open_run(shipped_config(), given.folder) as run,
        VllmEngine(**{**made.options, "enforce_eager": True}) as engine,
    ):
        asked = asked_of(*copies(questions(run)["relevance"], given.tiny))
        for number, _ in enumerate(engine.stream(asked), 1):
            if number == ANSWERS:
                yield Row("kill", PEAK, "")
                yield Row("kill", WORKING, f"{number} answers, and others under way")


def system(given: Given) -> Iterator[Row]:
    """A system that edits images with a pipeline of diffusers."""
    folder, started = given.folder / "kontext", time.perf_counter()
    config = read_system(shipped_configs() / "systems" / "flux_kontext.yaml")
    drawn = {"parameters": {**config.parameters, **TINY_DRAWING}, "size": TINY_SIZE}
    config = config.model_copy(update={"model": str(folder), **(drawn if given.tiny else {})})
    made: Any = make_system(config)
    import torch

    folder.mkdir()
    size = models.kontext(folder, given.tiny, measure_gpu_memory())
    yield Row("system", "made", _seconds(started), f"FLUX.1 Kontext, {size}")
    with open_run(shipped_config(), given.folder) as run:
        _built(run)
        tasks = Benchmark(str(run.folder.release)).tasks(run.folder.images).tasks
    with made as drawing:

        def ours(task: Task) -> None:
            if (drawn := drawing.draw(task)).outcome is not Outcome.OK:
                raise GenerationError(f"task {task.sample_id!r}: {drawn.text}")

        started = time.perf_counter()
        ours(tasks[0])
        yield Row("system", "start, with one image", _seconds(started))
        pipe, pipeline, _ = drawing._loaded

        def bare(task: Task) -> None:
            inputs = open_inputs(task)
            shown, _ = pipeline.build_inputs(inputs)
            asked = pipeline.size_arguments(config.size, inputs[0].size if inputs else None)
            noise = torch.Generator("cpu").manual_seed(config.seed)
            pipe(prompt=task.prompt, **drawing.options.call, **shown, **asked, generator=noise)

        seconds = given.seconds(1)
        found, alone = (_rate(step, tasks, seconds) for step in (ours, bare))
        steps = drawing.options.call["num_inference_steps"]
        named, beside = f"images of {steps} steps", f"pipeline alone: {alone:.3g}"
        yield Row("system", named, f"{found:.3g} images/s", beside, found / alone)
        yield Row("system", PEAK, "")
        started = time.perf_counter()
    yield Row("system", "free", _seconds(started))


def _rate(step: Callable[[Item], object], items: Sequence[Item], seconds: float) -> float:
    """How many a second, of at least one."""
    started = time.perf_counter()
    for number, item in enumerate(cycle(items), 1):
        step(item)
        if (taken := time.perf_counter() - started) >= seconds:
            return number / taken
    raise ValueError("nothing to do")


def metrics(given: Given) -> Iterator[Row]:
    """The metrics that look at pixels: one on a GPU, one on the processor."""
    registered()["structure_distance"].check_installed()
    folder = str(given.folder / "dino")
    write_model(Path(folder))
    side, many = (TINY_SIDE, BATCH_SIZE) if given.tiny else (SIDE, 2 * BATCH_SIZE)
    inputs, outputs = (generated(many, side, seed) for seed in (0, 1))
    options = {"model": folder, "batch_size": BATCH_SIZE, "n_boot": 0}
    metric = partial(structure_distance, cache=InputCache(most_bytes=0), **options)
    started = time.perf_counter()
    metric(inputs[:1], outputs[:1])
    yield Row("metrics", "start, with one sample", _seconds(started))
    vit = load_vit(VitOptions(folder, None, LAYER, SIZE, None))
    ready = np.stack([resize(one, SIZE).pixels for one in (*inputs, *outputs)])

    def alone(_: None) -> None:
        for at in range(0, len(ready), BATCH_SIZE):
            self_similarities(vit, LAYER, ready[at : at + BATCH_SIZE])

    ways = (lambda _: metric(inputs, outputs), alone)
    ours, bare = (len(ready) * _rate(one, [None], given.seconds(2)) for one in ways)
    of, beside = f"{side} x {side}", f"DINO ViT-S/16 alone: {bare:,.1f}"
    named = f"structure distance, {of}"
    yield Row("metrics", named, f"{ours:,.1f} images/s", beside, ours / bare)
    color = _rate(lambda _: color_shift(inputs, outputs, n_boot=0), [None], given.seconds(1))
    yield Row("metrics", f"color shift, {of}", f"{len(ready) * color:,.1f} images/s")
    yield Row("metrics", PEAK, "")


PARTS: dict[str, Callable[[Given], Iterator[Row]]] = {
    one.__name__: one for one in (reader, guard, system, metrics, kill)
}
