"""Stage in which a judge rates outputs one at a time (figures E.1 and E.2)."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import repeat
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from pydantic import BaseModel, ConfigDict, Field, create_model

from echo_hf._infra.bootstrap import MIN_SAMPLES
from echo_hf.config.checks import ANSWERED_BY
from echo_hf.config.evaluation import ImageSize, JudgeConfig
from echo_hf.config.judge_files import OUTPUT_PLACEHOLDERS
from echo_hf.config.rubrics import (
    OVERALL,
    PUBLISHED_SCALE,
    Rubric,
    Scale,
    parse_rubric,
    read_instructions,
)
from echo_hf.config.rubrics import TEXT_RENDERING as TEXT
from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.errors import ConfigError, ImageError
from echo_hf.hub.run_tables import find_left_out_reasons
from echo_hf.images.loader import BadImage, BadImageError, open_image
from echo_hf.images.store import ImageStore
from echo_hf.judging.verdicts import read_file_rating, read_rating, read_scalar, read_yes_no
from echo_hf.pipeline.answer_store import compute_request_keys
from echo_hf.pipeline.answers import Failure, RawText, StoredAnswers
from echo_hf.pipeline.stage import ModelStage, StageRows, assign_to_row, row_keys
from echo_hf.prompts import Prompt, fill_prompt, quote_as_data
from echo_hf.reasons import Reason
from echo_hf.scores.rating_table import Unrated
from echo_hf.scores.votes import ProtocolName
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import BenchmarkTasks
from echo_hf.tables import (
    BOOLEAN,
    DRAW,
    DRAW_COLUMN,
    INTEGER,
    OUTPUTS,
    RATINGS,
    STRING,
    STRINGS,
    Column,
    Outcome,
    Row,
    Table,
)


class NotJudged(Reason):
    """Why no judge is asked about an output."""

    WITHOUT_IMAGE = "without_picture", "the system made no image of the sample"


ValueT = TypeVar("ValueT")

TEXT_TO_IMAGE = "text_to_image"
YES_NO = {"yes": 1.0, "no": 0.0}  # as ratings

SAMPLE_COLUMNS = {
    "sample_digest": Column(STRING, "`sample_digest` of the sample"),
    "post_urls": Column(STRINGS, "posts that the sample was made from"),
    "prompt": Column(STRING, "the instruction"),
    "inputs": Column(STRINGS, "digests of its input images"),
}
TO_RATE = Table(
    "to_rate",
    "one output that a judge rates once",
    ("sample_id", "system", DRAW, "repeat"),
    {
        "sample_id": Column(STRING, "the sample"),
        "system": Column(STRING, "the system whose output is rated"),
        DRAW: DRAW_COLUMN,
        "repeat": Column(INTEGER, "number of the repetition, from 0"),
        **SAMPLE_COLUMNS,
        "split": Column(STRING, "the split of the sample"),
        "output": Column(STRING, "digest of the output"),
        "spared": Column(BOOLEAN, "true where the judge is not asked: its sample was not drawn"),
    },
)
SHARE_SEED = 0  # of the draw of samples for judges with a share


@dataclass(frozen=True)
class OutputsToRate:
    """The outputs that judges are asked about, by sample, and the numbers of those left out."""

    outputs: Mapping[str, Sequence[Row]]
    tasks: tuple[Task, ...]
    left_out: Mapping[Reason, int]

    def build_rows(self, judge: JudgeConfig, fits: Callable[[Task], bool]) -> Dataset:
        """Build the rows of `TO_RATE`: the samples that fit, once for each of the repetitions."""
        tasks = [task for task in self.tasks if fits(task) and self.outputs.get(task.sample_id)]
        drawn_samples = draw_share(tasks, judge.share)
        rows = (
            {
                **build_task_row(task),
                "system": output["system"],
                DRAW: output[DRAW],
                "output": output["image"],
                "repeat": repeat,
                "spared": task.sample_id not in drawn_samples,
            }
            for task in tasks
            for repeat in range(judge.repeats)
            for output in self.outputs[task.sample_id]
        )
        return to_dataset(TO_RATE, rows)


def select_outputs(
    outputs: pa.Table, benchmark: BenchmarkTasks, limit: int | None = None
) -> OutputsToRate:
    """Select the outputs that can be rated, and count the others; the limit is for each split."""
    digests = {task.sample_id: task.sample_digest for task in benchmark.tasks}
    left_out: Counter[Reason] = Counter(dict(benchmark.left_out.items()))
    by_sample: dict[str, list[Row]] = {}
    rows = sorted(outputs.to_pylist(), key=itemgetter(*OUTPUTS.key))
    reasons = find_left_out_reasons(pa.Table.from_pylist(rows, outputs.schema), digests)
    for row, reason in zip(rows, reasons, strict=True):
        if reason is not None:
            left_out[reason] += 1
        elif row["outcome"] != Outcome.OK or row["image"] is None:
            left_out[NotJudged.WITHOUT_IMAGE] += 1
        else:
            by_sample.setdefault(row["sample_id"], []).append(row)
    by_split: dict[str, list[Task]] = {}
    for task in benchmark.tasks:
        by_split.setdefault(task.split, []).append(task)
    limited = {task.sample_id for split_tasks in by_split.values() for task in split_tasks[:limit]}
    tasks = tuple(task for task in benchmark.tasks if task.sample_id in limited)
    return OutputsToRate(by_sample, tasks, left_out)


def to_dataset(table: Table, rows: Iterable[Row]) -> Dataset:
    return Dataset(pa.Table.from_pylist(list(rows), schema=table.features.arrow_schema))


def build_task_row(task: Task) -> dict[str, Any]:
    return {
        "sample_id": task.sample_id,
        "sample_digest": task.sample_digest,
        "post_urls": list(task.sources),
        "prompt": task.prompt,
        "inputs": [image.sha256 for image in task.inputs],
        "split": task.split,
    }


def compute_random_key(seed: int, *names: str) -> bytes:
    """Return a pseudo-random sort key that depends on the seed and the names alone."""
    joined = "\x1f".join((str(seed), *names))
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).digest()


def draw_share(tasks: Iterable[Task], share: float) -> set[str]:
    """Draw the samples that a judge with this share rates, of each split enough for an estimate."""
    drawn_samples, by_split = set[str](), dict[str, list[str]]()
    for task in tasks:
        by_split.setdefault(task.split, []).append(task.sample_id)
    for names in by_split.values():
        shuffled = sorted(names, key=lambda name: compute_random_key(SHARE_SEED, "share", name))
        drawn_samples.update(shuffled[: max(round(share * len(names)), MIN_SAMPLES)])
    return drawn_samples


def read_flags(applicability: pa.Table | None, metric: str) -> dict[str, bool | None]:
    if applicability is None:
        return {}
    rows = applicability.filter(pc.equal(applicability["metric"], metric))
    columns = (rows[name].to_pylist() for name in ("sample_id", "applies"))
    return dict(zip(*columns, strict=True))


def make_task_filter(
    judge: JudgeConfig, rubric: Rubric, applicability: pa.Table | None
) -> Callable[[Task], bool]:
    """Return what tells the samples that a rubric fits: flags where somebody said so, or splits."""
    is_text = rubric.name == TEXT
    if not (rubric.splits or rubric.question) or (is_text and judge.text_samples == "all"):
        return lambda _: True
    flags = read_flags(applicability, rubric.name)
    if is_text and judge.text_samples != "applicable":
        flags = {}
    if any(flag is not None for flag in flags.values()):
        return lambda task: bool(flags.get(task.sample_id))
    return lambda task: not rubric.splits or task.split in rubric.splits


SHORT_SIDE_PIXELS = 512
MAX_SIDE_PIXELS = 65_500  # the largest that a JPEG can have
THREADS = 4
# Chroma subsampling as OpenCV writes it. Without `comment`, Pillow would copy the original's, which
# may be a stranger's text.
JPEG_OPTIONS: Mapping[str, Any] = {"quality": 85, "subsampling": "4:2:0", "comment": b""}


def load_judge_images(
    images: ImageStore, digests: Iterable[str], size: ImageSize
) -> dict[str, ImageRef]:
    """Prepare the images for a judge in several threads; those that cannot be read are left out."""
    distinct_digests = dict.fromkeys(digests)

    def load_image(digest: str) -> ImageRef | None:
        file = images.path(digest)
        if size == "model_budget":
            return ImageRef(digest, file) if file.is_file() else None
        try:
            small_digest = images.put(resize_as_published(file))
        except ImageError:
            return None
        return ImageRef(small_digest, images.path(small_digest))

    with ThreadPoolExecutor(THREADS) as threads:
        references = zip(distinct_digests, threads.map(load_image, distinct_digests), strict=True)
        return {digest: reference for digest, reference in references if reference is not None}


def resize_as_published(image: bytes | Path) -> bytes:
    """Resize an image as the released code does before it sends it to a judge."""
    with open_image(image) as original:
        factor = SHORT_SIDE_PIXELS / min(original.size)
        size = int(original.size[0] * factor), int(original.size[1] * factor)
        if max(size) > MAX_SIDE_PIXELS:
            raise BadImageError(
                BadImage.TOO_MANY_PIXELS, f"{size[0]} x {size[1]} with a short side of 512"
            )
        small, sink = original.resize(size).convert("RGB"), io.BytesIO()
    small.save(sink, "JPEG", **JPEG_OPTIONS)
    return sink.getvalue()


def get_scale(judge: JudgeConfig, rubric: Rubric) -> Scale:
    own = judge.judge_file.scale or PUBLISHED_SCALE if judge.judge_file else judge.scale
    return own or rubric.scale or PUBLISHED_SCALE


def adapt_rubric(judge: JudgeConfig, rubric: Rubric) -> Rubric:
    """Return a rubric as a judge has it: with the instructions of its own file, if it has one."""
    if judge.prompt_file is None or rubric.name != OVERALL:
        return rubric
    try:
        text = read_instructions(judge.prompt_file)
        own = parse_rubric(text, str(judge.prompt_file), rubric.model_dump(exclude_none=True))
    except ConfigError as error:
        raise ConfigError(f"judge {judge.name!r}: prompt_file {error}") from None
    if (own.name, own.answer) != (OVERALL, rubric.answer):
        raise ConfigError(
            f"judge {judge.name!r}: prompt_file {str(judge.prompt_file)!r} is of name {own.name!r} "
            f"and answer {own.answer!r}: it stands for {OVERALL!r}, by which systems are compared; "
            "expected answer: rating, or the file under rubrics of the config"
        )
    return own


def fill_rubric_prompt(judge: JudgeConfig, rubric: Rubric) -> Prompt:
    """Return the instructions for assessing one output, with the form of the answer."""
    if rubric.answer == "yes_no":
        form = fill_prompt(f"judging/yes_no_{judge.mode}", {}).text
        return Prompt(rubric.name, rubric.fill_form(form))
    lowest, highest = get_scale(judge, rubric)
    fields = {
        "number": "a number, decimals allowed," if judge.decimals else "a whole number",
        "lowest": f"{lowest:g}",
        "highest": f"{highest:g}",
        "example": f"{math.floor((lowest + highest) / 2):g}",
    }
    form = fill_prompt(f"judging/rating_{judge.mode}", fields).text
    return Prompt(rubric.name, rubric.fill_form(form))


PROVENANCE_STAGE = "judge"  # key of a provenance
MAX_EXPLANATION = 20_000
CHARACTERS_PER_TOKEN, RESERVED_TOKENS = 3, 32  # of an explanation; for the JSON around it


@dataclass(frozen=True)
class JudgingStage(ModelStage):
    """Stage that sends a judge a request for each row, and makes a row of each answer."""

    field: ClassVar[str]  # the field of an answer that has the verdict

    judge: JudgeConfig = dataclasses.field(metadata={"digest": False})
    how: ImageSize
    images: Mapping[str, ImageRef] = dataclasses.field(metadata={"digest": False}, repr=False)

    @abstractmethod
    def _build_question(self, row: Row) -> tuple[list[Text | str], dict[str, Any]]:
        """Return what a judge is shown, images by digest, and the same as structured fields."""

    def _build_content(self, row: Row) -> tuple[list[Text | str], dict[str, Any]]:
        """Return the same in the order of the judge's own file, if it has one."""
        parts, inputs = self._build_question(row)
        if (file := self.judge.judge_file) is None:
            return parts, inputs
        shown = inputs["outputs"] if "outputs" in inputs else [inputs["output"]]
        outputs = dict(zip(OUTPUT_PLACEHOLDERS[file.form], shown, strict=True))
        task: dict[str, Any] = {"prompt": row["prompt"], "inputs": len(row["inputs"])}
        texts = {"prompt": row["prompt"], "task": quote_as_data("task", task)}
        content, text = list[Text | str](), ""
        for part, is_placeholder in file.split_message():
            if not is_placeholder or part in texts:
                text += texts[part] if is_placeholder else part
                continue
            content += [Text(text)] if text.strip() else []
            content += row["inputs"] if part == "inputs" else [outputs[part]]
            text = ""
        return content + ([Text(text)] if text.strip() else []), inputs

    def _get_answer_schema(self) -> type[BaseModel]:
        return self.answer

    @abstractmethod
    def _build_values(self, row: Row) -> dict[str, Any]:
        """Return the columns of a row that are known before it is answered."""

    @abstractmethod
    def _read_verdict(self, answer: BaseModel) -> tuple[Any, str]:
        """Return the verdict of an answer, or the reason why it has none, and its explanation."""

    @abstractmethod
    def _convert_answer(self, answer: BaseModel, row: Row) -> dict[str, Any]:
        """Return the columns that an answer fills."""

    def unusable(self, answer: BaseModel) -> Reason | None:
        """Return the reason why an answer has no verdict; null where it has one."""
        verdict, _ = self._read_verdict(answer)
        return verdict if isinstance(verdict, Unrated) else None

    def reading(self, answer: BaseModel) -> Mapping[str, Any]:
        """Return the verdict of an answer, by its field."""
        return {self.field: self._read_verdict(answer)[0]}

    def _build_provenance(self, row: Row) -> dict[str, Any]:
        """Return what the provenance says of an answer beside the columns of its row."""
        del row
        return {"shown": {"as": self.how}}

    def describe(self) -> dict[str, Any]:
        """Describe what decides an answer; the judge's price or budget does not."""
        judge_options: dict[str, Any] = {
            "mode": self.judge.mode,
            "max_tokens": self.judge.max_tokens,
        }
        if self.judge.answer_form != "rating":
            judge_options["form"] = self.judge.answer_form
        if self.judge.judge_file is not None:
            judge_options["file"] = self.judge.judge_file.model_dump(mode="json")
        return {**super().describe(), "judge": self.judge.name, "asked": judge_options}

    def requests(self, table: pa.Table) -> list[list[Request]]:
        file, is_scalar = self.judge.judge_file, self.judge.answer_form == "scalar"
        instructions = self.prompt.text if file is None else file.system
        system = () if instructions is None else (Message("system", (Text(instructions),)),)
        max_tokens = 1 if is_scalar else self.judge.max_tokens  # a scalar is no token at all
        schema = self._get_answer_schema() if self.judge.mode == "structured" else None
        requests_by_row, keys = [], row_keys(table, self.inputs).to_pylist()
        for key, row in zip(keys, self.input_rows(table), strict=True):
            if row.get("spared"):
                requests_by_row.append(assign_to_row(key, []))
                continue
            parts, inputs = self._build_content(row)
            content = [self.images.get(part) if isinstance(part, str) else part for part in parts]
            request = Request(
                self.name,
                (*system, Message("user", tuple(part for part in content if part is not None))),
                schema,
                max_tokens,
                inputs,
                tuple(row["post_urls"]),
                repeat=row["repeat"],
            )
            requests_by_row.append(assign_to_row(key, [] if None in content else [request]))
        return requests_by_row

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        """Build a row for each answer, with its cost and its provenance."""
        calls, rows = iter(self._iterate_costs(table)), StageRows(self.outputs)
        prompt_digest = hashlib.sha256(self.prompt.text.encode()).hexdigest()
        made_with = {
            "digest": self.digest(),
            "mode": self.judge.mode,
            **({"form": form} if (form := self.judge.answer_form) != "rating" else {}),
            ANSWERED_BY: self.judge.answered_by.model_dump(),
            "engine": dict(self.answers.signature) if self.answers else None,
        }
        keys = row_keys(table, self.inputs).to_pylist()
        for number, (key, row) in enumerate(zip(keys, self.input_rows(table), strict=True)):
            values = {
                "judge": self.judge.name,
                "prompt_digest": prompt_digest,
                **self._build_values(row),
            }
            provenance = {PROVENANCE_STAGE: made_with | self._build_provenance(row)}
            values["provenance"] = json.dumps(provenance, sort_keys=True, default=str)
            unasked = Unrated.NOT_NEEDED if row.get("spared") else Unrated.UNSHOWABLE
            values["outcome"] = unasked.value
            for answer in answers[number]:
                values |= next(calls)
                if isinstance(answer, Failure):
                    rows.quarantine(number, key, answer)
                    values["outcome"] = answer.reason.value
                else:
                    values |= self._convert_answer(answer, row)
            rows.keep(number, key, values)
        return rows.to_table()

    def _iterate_costs(self, table: pa.Table) -> Iterator[dict[str, Any]]:
        """Yield the usage and the cost of each stored answer, as far as they are known."""
        if not isinstance(self.answers, StoredAnswers):
            yield from repeat({})
            return
        requests = [request for row_requests in self.requests(table) for request in row_requests]
        keys = compute_request_keys(self.answers.signature, requests)
        records = self.answers.store.records(list(dict.fromkeys(keys)))
        for record in map(records.get, keys):
            usage = dataclasses.asdict(record.usage) if record else {}
            token_counts = {f"{kind}_tokens": count for kind, count in usage.items()}
            yield {"usage": token_counts, "cost_usd": record.cost_usd} if record else {}


def read_verdict(
    answer: BaseModel, field: str, parse: Callable[[str], ValueT | Unrated]
) -> tuple[ValueT | Unrated, str]:
    """Return the verdict of an answer, from its field or its text, and the explanation."""
    if isinstance(answer, RawText):
        return parse(answer.text), answer.text
    fields = answer.model_dump()
    return fields[field], fields["explanation"]


class JudgeAnswer(BaseModel):
    """A judge's reasons; a subclass has its verdict after them, so that it reasons first."""

    model_config = ConfigDict(extra="ignore")
    keyed_lengths: ClassVar[Mapping[str, int]] = {"explanation": MAX_EXPLANATION}

    explanation: Annotated[str, Field(max_length=MAX_EXPLANATION)]


class RatingAnswer(JudgeAnswer):
    """A judge's reasons, and its rating after them, so that it reasons first."""

    rating: float


@lru_cache(maxsize=64)
def create_rating_schema(
    lowest: float, highest: float, decimals: bool, max_tokens: int
) -> type[RatingAnswer]:
    number: Any = float if decimals else int
    rating = Annotated[number, Field(ge=number(lowest), le=number(highest))]
    explanation: Any = make_explanation_type(max_tokens)
    fields: dict[str, Any] = {"explanation": (explanation, ...), "rating": (rating, ...)}
    return create_model("RatingAnswer", __base__=RatingAnswer, **fields)


class YesNoAnswer(JudgeAnswer):
    """A judge's reasons, and its yes or no after them."""

    answer: Literal["yes", "no"]


@lru_cache(maxsize=16)
def create_yes_no_schema(max_tokens: int) -> type[YesNoAnswer]:
    fields: dict[str, Any] = {"explanation": (make_explanation_type(max_tokens), ...)}
    return create_model("YesNoAnswer", __base__=YesNoAnswer, **fields)


def make_explanation_type(max_tokens: int) -> Any:
    """Return the type of an explanation that leaves room for the verdict."""
    # A longer one is accepted, up to `MAX_EXPLANATION`.
    longest = min(MAX_EXPLANATION, max(1, CHARACTERS_PER_TOKEN * (max_tokens - RESERVED_TOKENS)))
    schema_extra: dict[str, Any] = {"maxLength": longest}
    return Annotated[str, Field(max_length=MAX_EXPLANATION, json_schema_extra=schema_extra)]


@dataclass(frozen=True)
class Rate(JudgingStage):
    """Stage in which one judge rates outputs by one rubric."""

    name: ClassVar[str] = "rate"
    version: ClassVar[int] = 2
    inputs: ClassVar[Table] = TO_RATE
    outputs: ClassVar[Table] = RATINGS
    answer: ClassVar[type[BaseModel]] = RatingAnswer
    field: ClassVar[str] = "rating"

    rubric: str
    definition: Rubric = dataclasses.field(metadata={"digest": False})
    protocol: ProtocolName

    @property
    def prompt(self) -> Prompt:
        if self.judge.judge_file is not None:
            return Prompt(self.rubric, self.judge.judge_file.text)
        if self.is_scalar:
            return Prompt(self.rubric, self.definition.fill_form("").strip())
        return fill_rubric_prompt(self.judge, self.definition)

    @property
    def scale(self) -> Scale:
        return (0.0, 1.0) if self.is_yes_no else get_scale(self.judge, self.definition)

    @property
    def is_scalar(self) -> bool:
        return self.judge.answer_form == "scalar"

    @property
    def is_yes_no(self) -> bool:
        return self.definition.answer == "yes_no"

    def describe(self) -> dict[str, Any]:
        """Describe what decides a rating."""
        described = super().describe()
        if self.is_scalar or self.judge.judge_file is not None:
            return described
        scale = [*self.scale, self.judge.decimals and not self.is_yes_no]
        return {**described, "asked": {**described["asked"], "scale": scale}}

    def _build_question(self, row: Row) -> tuple[list[Text | str], dict[str, Any]]:
        task, inputs = {"prompt": row["prompt"]}, list[str]()
        if self.definition.sees_inputs:
            inputs = row["inputs"]
            task["inputs"] = len(inputs)
        # Outputs of a sample share this beginning, which engines then compute only once.
        shared = [Text(quote_as_data("task", task)), *inputs]
        parts = [*shared, Text("<output>"), row["output"], Text("</output>")]
        return parts, {**task, "rubric": self.rubric, "output": row["output"]}

    def _get_answer_schema(self) -> type[BaseModel]:
        if self.is_yes_no:
            return create_yes_no_schema(self.judge.max_tokens)
        return create_rating_schema(*self.scale, self.judge.decimals, self.judge.max_tokens)

    def _build_provenance(self, row: Row) -> dict[str, Any]:
        parts, _ = self._build_content(row)
        images = {part: self.images.get(part) for part in parts if isinstance(part, str)}
        sent_as = {part: image and image.sha256 for part, image in images.items()}
        is_alone = sum(isinstance(part, str) for part in parts) == 1
        inputs = [] if is_alone else list(map(sent_as.get, row["inputs"]))
        sent = {"as": self.how, "inputs": inputs, "output": sent_as[row["output"]]}
        scale = None if self.is_scalar else list(self.scale)
        return {"protocol": self.protocol, "scale": scale, "shown": sent}

    def _build_values(self, row: Row) -> dict[str, Any]:
        names = ("sample_id", "system", DRAW, "repeat", "sample_digest", "split")
        columns = {name: row[name] for name in names}
        return {**columns, "rubric": self.rubric, "output_sha256": row["output"]}

    def wanted_form(self, request: Request) -> str:
        """Describe the form of a rating, for the message that asks again."""
        if self.is_yes_no:
            return super().wanted_form(request) if request.answer else "[[yes]] or [[no]]"
        if self.is_scalar:
            return "a number without words"
        if (file := self.judge.judge_file) is not None:
            return file.wanted_form
        lowest, highest = self.scale
        number = "a number" if self.judge.decimals else "a whole number"
        scale = f"{number} from {lowest:g} to {highest:g}"
        if request.answer is not None:
            return f"{super().wanted_form(request)} ({scale})"
        return f"{scale} as [[rating]] at the end"

    def _read_verdict(self, answer: BaseModel) -> tuple[float | Unrated, str]:
        if self.is_yes_no:
            yes_or_no, text = read_verdict(answer, "answer", read_yes_no)
            return yes_or_no if isinstance(yes_or_no, Unrated) else YES_NO[yes_or_no], text
        if self.is_scalar:
            return read_verdict(answer, self.field, read_scalar)[0], ""
        if (file := self.judge.judge_file) is not None:
            return read_verdict(answer, self.field, partial(read_file_rating, file=file))
        options: Any = {"scale": self.scale, "decimals": self.judge.decimals}
        read = partial(read_rating, **options, protocol=self.protocol)
        return read_verdict(answer, self.field, read)

    def _convert_answer(self, answer: BaseModel, row: Row) -> dict[str, Any]:
        del row  # a rating is read in the same way whatever it is about
        rating, text = self._read_verdict(answer)
        if isinstance(rating, Unrated):
            return {"explanation": text, "outcome": rating.value}
        return {"rating": float(rating), "explanation": text, "outcome": Outcome.OK.value}
