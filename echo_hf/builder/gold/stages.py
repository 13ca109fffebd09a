"""The input of each stage as gold has it, and how an engine's answers are compared with gold."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from datasets import Dataset
from scipy.optimize import linear_sum_assignment

from echo_hf.builder.gold.folder import (
    LINES,
    ExtractLine,
    FeedbackLine,
    Gold,
    GoldSample,
    ImagePlace,
    RelevanceLine,
    RolesLine,
    SafetyLine,
    ScreenshotLine,
    TaskLine,
    fold_text,
)
from echo_hf.builder.gold.measures import Item, Measure, NamedItem, grade, similarity, summarize
from echo_hf.builder.gold.posts import GoldPosts, make_dataset
from echo_hf.config.loading import Config
from echo_hf.errors import GoldError, StageError, unknown
from echo_hf.pipeline.result import StageResult, sort_rows
from echo_hf.samples.boxes import format_box, intersection_over_union
from echo_hf.samples.extract import (
    MAX_FEEDBACK_CHARACTERS,
    TRASH,
    Extract,
    ExtractAnswer,
    PostFeedback,
    SampleAnswer,
    render_posts,
    split_thread,
)
from echo_hf.samples.spans import squeeze
from echo_hf.samples.tasks import TaskDraft, build_rows, own_images
from echo_hf.tables import THREADS, Row

UNLIMITED = 1_000_000_000
SampleKey = tuple[str, str]  # the root of the thread, and the prompt with single spaces
AnsweredLine = tuple[str, Any, Any]  # root of the thread, gold, answer
FEEDBACK, NO_FEEDBACK = "feedback", "no feedback of this sample"
SCREENSHOT, NO_SCREENSHOT = "screenshot", "no screenshot"
MIN_FOUND_OVERLAP = 0.5
NO_BOX = "no box"
SAMPLES = ("extract", "roles")
WITH_ROLES = "samples_with_roles"


def read_key(row: Row) -> SampleKey:
    root, prompt = json.loads(row["provenance"])["gold"]
    return root, prompt


@dataclass(frozen=True)
class ImageRoles:
    """The roles of a sample's images by their digests, as people or an engine say."""

    roles: dict[str, str]
    screenshots: set[frozenset[str]]  # those of people with all images of the same conversation
    completions: set[tuple[str, str]]  # an image, and the filled prompt, folded
    places: Mapping[str, str]  # names of the images in messages

    def list_prompts(self, digest: str) -> set[str]:
        return {prompt for image, prompt in self.completions if image == digest}


@dataclass(frozen=True)
class GoldMaterial:
    config: Config
    gold: Gold
    posts: GoldPosts

    @property
    def posts_to_score(self) -> list[Row]:
        urls = {line.url for line in self.gold["relevance"]}
        rows = (row for row in self.posts.posts if row["url"] in urls)
        # With an empty list the stage would not ask.
        return [{**row, "keywords": row["keywords"] or None} for row in rows]

    @cached_property
    def threads(self) -> list[Row]:
        """The annotated threads, as `extract` reads them."""
        root_urls = {line.root_url for line in self.gold["extract"]}
        return [row for row in self.posts.threads if row["root_url"] in root_urls]

    @cached_property
    def samples(self) -> list[Row]:
        """The annotated samples with their context, as `roles` reads them."""
        if not self.threads:
            return []
        stage, threads = Extract(self.config.target, UNLIMITED), make_dataset(THREADS, self.threads)
        samples = {line.root_url: line.samples for line in self.gold["extract"]}
        answers: list[list[Any]] = [
            [
                _make_answer(samples[row["root_url"]], row["posts"], part)
                for part in split_thread(render_posts(row["posts"], UNLIMITED), UNLIMITED)
            ]
            for row in self.threads
        ]
        extracted = Dataset(stage.finish(threads.with_format("arrow")[:], answers))
        wanted_keys, root_of = {line.key for line in self.gold["roles"]}, self.posts.root_of
        return [
            {**row, "provenance": json.dumps({"gold": key})}
            for row in sort_rows(stage, threads, extracted).dataset.to_list()
            if (key := (root_of[row["post_urls"][0]], squeeze(row["prompt"]))) in wanted_keys
        ]

    @cached_property
    def samples_with_roles(self) -> list[Row]:
        """The samples with the annotated roles of their images, as `feedback` reads them."""
        line_of = {line.key: line for line in self.gold["roles"]}
        rows: list[Row] = []
        for row in self.samples:
            tasks = list(self._make_tasks(row, line_of[read_key(row)]))
            rows += build_rows(row, tasks, {}) if tasks and row["output_images"] else [row]
        return rows

    @property
    def screenshot_samples(self) -> list[Row]:
        """The samples that show a conversation or a collage, as `screenshots` reads them."""
        return [row for row in self.samples_with_roles if row["screenshot"]]

    @property
    def usable_samples(self) -> list[Row]:
        return [row for row in self.samples_with_roles if row["quality"] != TRASH]

    @cached_property
    def roles(self) -> dict[SampleKey, ImageRoles]:
        line_of = {line.key: line for line in self.gold["roles"]}
        # An unused image of a sample may be in the line of another sample of the thread.
        images = (image for line in line_of.values() for image in line.pictures)
        role_at = {(image.post_url, self.posts.digest(image)): image.role for image in images}
        image_roles: dict[SampleKey, ImageRoles] = {}
        for row in self.samples:
            urls = {image.sha256: row["context"][image.post]["url"] for image in own_images(row)}
            if not urls or row["quality"] == TRASH:
                continue
            key = read_key(row)
            groups = (self._digests(images, urls) for images in line_of[key].screenshots)
            filled = {
                (digest, fold_text(filling.prompt))
                for filling in line_of[key].filled
                for digest in self._digests([filling.output], urls)
            }
            image_roles[key] = ImageRoles(
                {
                    image: role_at[url, image]
                    for image, url in urls.items()
                    if (url, image) in role_at
                },
                {frozenset(group) for group in groups if group},
                filled,
                {digest: self._name_place(url, digest) for digest, url in urls.items()},
            )
        return image_roles

    def _name_place(self, url: str, digest: str) -> str:
        digests = self.posts.images[url]
        return f"{url} image {digests.index(digest) if digest in digests else digest}"

    def _digests(self, images: Iterable[ImagePlace], candidates: Collection[str]) -> list[str]:
        digests = dict.fromkeys(self.posts.digest(image) for image in images)
        return [digest for digest in digests if digest and digest in candidates]

    def _make_tasks(self, row: Row, line: RolesLine) -> Iterator[TaskDraft]:
        candidates = set(row["output_images"])
        inputs, outputs = (
            self._digests((image for image in line.pictures if image.role == role), candidates)
            for role in ("input", "output")
        )
        if not line.filled:
            screenshots = self._digests((image for image, *_ in line.screenshots), candidates)
            screenshot = next(iter(screenshots), None)
            yield TaskDraft(row["prompt"], inputs=inputs, outputs=outputs, screenshot=screenshot)
        filled: dict[str, TaskDraft] = {}
        for filling in line.filled:
            # A completion without blanks gets an empty one, so that it counts as filled.
            blanks = tuple(filling.blanks.items()) or (("", ""),)
            new_task = TaskDraft(filling.prompt, blanks, list(inputs))
            task = filled.setdefault(filling.prompt, new_task)
            task.outputs += self._digests([filling.output], candidates)
        yield from (task for task in filled.values() if task.outputs)


def _make_answer(
    samples: Iterable[GoldSample], posts: Sequence[Row], numbers: Iterable[int]
) -> ExtractAnswer:
    number = {posts[place]["url"]: place for place in numbers}
    text = {place: (posts[place]["text"] or "").strip() for place in number.values()}
    answers = [
        SampleAnswer(
            prompt=sample.prompt,
            quality=sample.quality,
            posts=[number[url] for url in sample.post_urls if url in number],
            feedback=[
                PostFeedback(post=place, feedback=text[place][:MAX_FEEDBACK_CHARACTERS])
                for place in sorted(number[url] for url in {*sample.feedback_urls} & {*number})
            ],
        )
        for sample in samples
        if sample.post_urls[0] in number
    ]
    return ExtractAnswer(samples=answers)


# Comparisons, one for each gold file: a line with an engine's answer, null where there is none.


def compare_score(
    root: str, line: RelevanceLine, score: int | None, config: Config
) -> Iterator[NamedItem]:
    keep, right = config.stages.relevance.keep, {line.score, *line.acceptable}
    answer = None if score is None else str(score)
    yield "score_accuracy", grade(root, line.url, map(str, right), answer)
    if len({score in keep for score in right}) > 1:
        for name in ("keep_precision", "keep_recall", "drop_precision", "drop_recall"):
            yield name, None
        return
    side = "keep" if line.score in keep else "drop"
    answered_side = "keep" if score in keep else "drop"
    item = grade(root, line.url, {side}, None if score is None else answered_side)
    yield f"{side}_recall", item
    if score is not None:
        yield f"{answered_side}_precision", item


def compare_samples(
    root: str, line: ExtractLine, rows: Sequence[Row] | None, _: Config
) -> Iterator[NamedItem]:
    answered = rows is not None
    pairs = list(_pair_samples(line.samples, rows or ()))
    doubtful = set[str]()
    for gold, _row in pairs:
        if gold:
            doubtful.update(gold.feedback_optional, () if _is_counted(gold) else gold.feedback)
    for gold, row in pairs:
        if gold:
            yield from _compare_sample(root, gold, row, answered)
        if row is None or row["quality"] == TRASH:
            continue
        right = gold is not None and _is_counted(gold)
        if gold and not right and (gold.optional or {*gold.acceptable} - {TRASH}):
            continue
        place = gold.post_urls[0] if gold else row["post_urls"][0]
        expected = gold.prompt if gold and right else "no sample"
        yield "sample_precision", Item(root, place, expected, row["prompt"], float(right))
        for url in _list_feedback_urls(row):
            if url not in doubtful:
                listed = FEEDBACK if gold and url in gold.feedback else NO_FEEDBACK
                yield "feedback_precision", grade(root, url, {listed}, FEEDBACK)


def _is_counted(gold: GoldSample) -> bool:
    return not gold.optional and gold.quality != TRASH


def _list_feedback_urls(row: Row) -> list[str]:
    return [comment["post_url"] for comment in row["community_feedback"]]


def _compare_sample(
    root: str, gold: GoldSample, row: Row | None, answered: bool
) -> Iterator[NamedItem]:
    post_url, right = gold.post_urls[0], {gold.quality, *gold.acceptable}
    if _is_counted(gold) or (row and not gold.optional):
        quality = row["quality"] if row else None
        yield "quality_accuracy", grade(root, post_url, right, quality)
    if not _is_counted(gold):
        return
    # A sample found as Trash counts as not found, unless gold accepts Trash.
    usable = row if row and (row["quality"] != TRASH or TRASH in right) else None
    alike = similarity(gold.prompt, usable["prompt"]) if usable else None
    scores = {
        "sample_recall": float(usable is not None) if answered else None,
        "prompt_similarity": alike,
        "prompts_exact": None if alike is None else float(alike == 1),
    }
    for name, score in scores.items():
        yield name, Item(root, post_url, gold.prompt, row["prompt"] if row else "", score)
    for url in gold.feedback:
        answer = FEEDBACK if usable and url in _list_feedback_urls(usable) else NO_FEEDBACK
        yield "feedback_recall", grade(root, url, {FEEDBACK}, answer if answered else None)


def _pair_samples(
    gold: Sequence[GoldSample], rows: Sequence[Row]
) -> Iterator[tuple[GoldSample | None, Row | None]]:
    """Pair samples with the same primary post, the most similar prompts first; then the others."""
    candidates = []
    for sample, row in product(gold, rows):
        if sample.post_urls[0] == row["post_urls"][0]:
            prompt, quality = row["prompt"], row["quality"]
            order_of = -similarity(sample.prompt, prompt), squeeze(sample.prompt)
            order = (quality == TRASH, *order_of, prompt, quality, _list_feedback_urls(row))
            candidates.append((order, sample, row))
    paired_ids: set[int] = set()
    for _, sample, row in sorted(candidates, key=itemgetter(0)):
        if paired_ids.isdisjoint((id(sample), id(row))):
            paired_ids |= {id(sample), id(row)}
            yield sample, row
    yield from ((sample, None) for sample in gold if id(sample) not in paired_ids)
    yield from ((None, row) for row in rows if id(row) not in paired_ids)


def compare_roles(
    root: str, line: ImageRoles, answered: ImageRoles | None, _: Config
) -> Iterator[NamedItem]:
    places = line.places
    for digest, place in places.items():
        role = answered.roles.get(digest, "neither") if answered else None
        right = line.roles.get(digest)
        yield "picture_role_accuracy", grade(root, place, {right}, role) if right else None
    for group in line.screenshots:
        answered_group = _name_screenshot(group, answered.screenshots) if answered else None
        place = min(places[digest] for digest in group)
        yield "screenshot_recall", grade(root, place, {SCREENSHOT}, answered_group)
    for digest, prompt in line.completions:
        prompts = answered.list_prompts(digest) if answered else set()
        best = prompt if prompt in prompts else min(prompts, default="")
        yield "blanks_filled", grade(root, places[digest], {prompt}, best if answered else None)
    for group in answered.screenshots if answered else ():
        place = min(places.get(digest, digest) for digest in group)
        item = grade(root, place, {_name_screenshot(group, line.screenshots)}, SCREENSHOT)
        yield "screenshot_precision", item
    for digest, prompt in answered.completions if answered else ():
        expected = line.list_prompts(digest) or {"no completion"}
        yield "completion_precision", grade(root, places.get(digest, digest), expected, prompt)


def _name_screenshot(group: frozenset[str], others: Iterable[frozenset[str]]) -> str:
    return SCREENSHOT if any(group & other for other in others) else NO_SCREENSHOT


def read_roles(rows: Iterable[Row]) -> dict[SampleKey, ImageRoles]:
    """Return the roles that `roles` gave each sample's images; unanswered samples are left out."""
    roles_of_sample: dict[SampleKey, ImageRoles] = {}
    for row in rows:
        image_roles = roles_of_sample.setdefault(read_key(row), ImageRoles({}, set(), set(), {}))
        outputs, shots = row["output_images"], [row["screenshot"]] if row["screenshot"] else []
        for digest in row["input_images"]:
            image_roles.roles.setdefault(digest, "input")
        image_roles.roles.update(dict.fromkeys(outputs, "output"))
        image_roles.screenshots.update(frozenset([digest]) for digest in shots)
        if row["prompt_fill_blank"]:
            prompt = fold_text(row["prompt"])
            image_roles.completions.update((digest, prompt) for digest in outputs or shots)
    return roles_of_sample


def compare_screenshot(
    root: str, line: ScreenshotLine | None, row: Row | None, _: Config
) -> Iterator[NamedItem]:
    if line is None:
        yield "box_iou", None
        return
    place = f"{line.post_url} image {line.index}"
    gold_boxes = _list_boxes(line.inputs, line.outputs)
    boxes = _list_boxes(row["input_bboxs"], row["output_bboxs"]) if row else []
    # Pair drawn and answered boxes so that the sum of their overlaps is largest.
    shared = np.zeros((len(gold_boxes), len(boxes)))
    for (a, (_role, own)), (b, (_role, box)) in product(enumerate(gold_boxes), enumerate(boxes)):
        shared[a, b] = intersection_over_union(own, box)
    rows, columns = linear_sum_assignment(shared, maximize=True)
    pairs = {int(a): int(b) for a, b in zip(rows, columns, strict=True) if shared[a, b] > 0}
    right: dict[int, str] = {}
    for number, (role, box) in enumerate(gold_boxes):
        text, answer, overlap, given_role = format_box(box), "", None, None
        if number in pairs:
            other = pairs[number]
            answer, overlap = format_box(boxes[other][1]), float(shared[number, other])
            if overlap >= MIN_FOUND_OVERLAP:
                given_role, right[other] = boxes[other][0], text
        yield "box_iou", Item(root, place, text, answer, overlap)
        score = float(given_role is not None) if row else None
        yield "box_recall", Item(root, place, text, (answer or NO_BOX) if row else "", score)
        yield "role_accuracy", grade(root, f"{place} {text}", {role}, given_role)
    for number, (_role, box) in enumerate(boxes):
        expected, is_right = right.get(number, NO_BOX), float(number in right)
        yield "box_precision", Item(root, place, expected, format_box(box), is_right)
    read = json.loads(row["provenance"])["screenshots"]["prompt_read"] if row else None
    alike = None if read is None else similarity(line.prompt, read)
    yield "prompt_similarity", Item(root, place, line.prompt, read or "", alike)


def _list_boxes(inputs: Iterable[Any], outputs: Iterable[Any]) -> list[tuple[str, Any]]:
    boxes_of_role = (("input", inputs), ("output", outputs))
    return [(role, tuple(map(int, box))) for role, boxes in boxes_of_role for box in boxes]


def compare_verdict(
    root: str, line: FeedbackLine, comment: Row | None, _: Config
) -> Iterator[NamedItem]:
    post_url, right = line.post_url, {line.verdict, *line.acceptable}
    verdict = comment["verdict"] if comment else None
    yield "verdict_accuracy", grade(root, post_url, right, verdict)
    if line.keywords:
        keyword = fold_text(comment["keyword"] or "") if comment else ""
        score = float(keyword in line.keywords) if keyword else None
        expected, text = " or ".join(sorted(line.keywords)), "no keyword" if comment else ""
        yield "keyword_accuracy", Item(root, post_url, expected, keyword or text, score)


def compare_task(root: str, line: TaskLine, row: Row | None, _: Config) -> Iterator[NamedItem]:
    for name, right in (("kind", {line.kind}), ("task", {line.task, *line.acceptable})):
        answer = row[name] or "no image asked for" if row else None
        yield f"{name}_accuracy", grade(root, line.prompt, right, answer)


def compare_safety(
    root: str, line: SafetyLine, row: Row | None, config: Config
) -> Iterator[NamedItem]:
    harmless = set(line.categories).isdisjoint(config.stages.safety.remove)
    answer = None
    if row is not None:
        answer = "remove" if row["has_nsfw"] else "keep"
    item = grade(root, line.prompt, {"keep" if harmless else "remove"}, answer)
    yield "keep_recall" if harmless else "removal_recall", item
    if answer == "remove":
        yield "removal_precision", item
    answered_codes = row["safety"]["categories"] if row else ()
    for code in line.categories:
        codes = ", ".join(answered_codes) or "no hazard"
        score = float(code in answered_codes) if row else None
        yield "hazard_recall", Item(root, line.prompt, code, codes if row else "", score)


def _pair_scores(gold: GoldMaterial, result: StageResult) -> Iterator[AnsweredLine]:
    scores = {row["url"]: (row["relevance"] or {}).get("score") for row in result.dataset.to_list()}
    for line in gold.gold["relevance"]:
        yield gold.posts.root_of[line.url], line, scores.get(line.url)


def _pair_extracted(gold: GoldMaterial, result: StageResult) -> Iterator[AnsweredLine]:
    quarantined = set(result.quarantine["root_url"])
    rows_of_root: dict[str, list[Row]] = {}
    for row in result.dataset.to_list():
        rows_of_root.setdefault(gold.posts.root_of[row["post_urls"][0]], []).append(row)
    for line in gold.gold["extract"]:
        root = line.root_url
        yield root, line, None if root in quarantined else rows_of_root.get(root, [])


def _pair_roles(gold: GoldMaterial, result: StageResult) -> Iterator[AnsweredLine]:
    answered = read_roles(result.dataset.to_list())
    yield from ((key[0], roles, answered.get(key)) for key, roles in gold.roles.items())


def _pair_screenshots(gold: GoldMaterial, result: StageResult) -> Iterator[AnsweredLine]:
    root_of, digest = gold.posts.root_of, gold.posts.digest
    line_of = {(root_of[line.post_url], digest(line)): line for line in gold.gold["screenshots"]}
    answered_rows = _select_answered(result, "screenshots")
    for row in gold.screenshot_samples:
        root, _ = read_key(row)
        yield root, line_of.get((root, row["screenshot"])), answered_rows.get(row["id"])


def _pair_verdicts(gold: GoldMaterial, result: StageResult) -> Iterator[AnsweredLine]:
    rows = result.dataset.to_list()
    comments = (comment for row in rows for comment in row["community_feedback"])
    by_post = {comment["post_url"]: comment for comment in comments if comment["verdict"]}
    feedback_urls = {url for row in gold.usable_samples for url in _list_feedback_urls(row)}
    for line in gold.gold["feedback"]:
        if line.post_url in feedback_urls:
            yield gold.posts.root_of[line.post_url], line, by_post.get(line.post_url)


def _pair_tasks(gold: GoldMaterial, result: StageResult) -> Iterator[AnsweredLine]:
    return _pair_rows(gold, "tasks", _select_answered(result, "feedback"))


def _pair_hazards(gold: GoldMaterial, result: StageResult) -> Iterator[AnsweredLine]:
    rows = result.dataset.to_list()
    screened = {row["id"]: row for row in rows if row["has_nsfw"] is not None}
    return _pair_rows(gold, "safety", screened)


def _pair_rows(gold: GoldMaterial, file: str, rows: Mapping[str, Row]) -> Iterator[AnsweredLine]:
    line_of = {line.key: line for line in gold.gold[file]}
    for row in gold.usable_samples:
        if line := line_of.get(read_key(row)):
            yield line.root_url, line, rows.get(row["id"])


def _select_answered(result: StageResult, stage: str) -> dict[str, Row]:
    rows = result.dataset.to_list()
    return {row["id"]: row for row in rows if json.loads(row["provenance"]).get(stage)}


class FileCheck(NamedTuple):
    """A gold file: the stage it checks, and how answers are compared with its lines."""

    stage: str
    needs: tuple[str, ...]  # files that the stage's input is made of
    reads: str  # attribute of the material that is this input
    pairs: Callable[[GoldMaterial, StageResult], Iterable[AnsweredLine]]
    compare: Callable[[str, Any, Any, Config], Iterator[NamedItem]]


FILE_CHECKS = {
    "relevance": FileCheck("relevance", (), "posts_to_score", _pair_scores, compare_score),
    "extract": FileCheck("extract", (), "threads", _pair_extracted, compare_samples),
    "roles": FileCheck("roles", ("extract",), "samples", _pair_roles, compare_roles),
    "screenshots": FileCheck(
        "screenshots", SAMPLES, "screenshot_samples", _pair_screenshots, compare_screenshot
    ),
    "feedback": FileCheck("feedback", SAMPLES, WITH_ROLES, _pair_verdicts, compare_verdict),
    "tasks": FileCheck("feedback", SAMPLES, WITH_ROLES, _pair_tasks, compare_task),
    "safety": FileCheck("safety", SAMPLES, WITH_ROLES, _pair_hazards, compare_safety),
}
CHECKS = {check.stage: check for check in FILE_CHECKS.values()}


def choose_stages(
    gold: Gold, half: str, stages: Collection[str] | None
) -> tuple[list[str], list[str]]:
    """Return the stages to check, and notes on those that are not."""
    for name in stages or ():
        if name not in CHECKS:
            raise StageError(unknown("stage that asks a model", name, CHECKS))
    chosen, notes = [], []
    for name, check in CHECKS.items():
        if stages is not None and name not in stages:
            continue
        own_files = [file for file, file_check in FILE_CHECKS.items() if file_check.stage == name]
        needed = [*([file] for file in check.needs), own_files]
        lacking = [" or ".join(files) for files in needed if not any(gold[file] for file in files)]
        reason = f"there is no line{name_half(half)} in {', '.join(lacking)} (.jsonl)"
        if lacking and stages is not None:
            raise GoldError(f"stage {name!r} cannot be checked: {reason}")
        if lacking:
            notes.append(f"{name} is not checked: {reason}")
        else:
            chosen.append(name)
    return chosen, notes


def name_half(half: str) -> str:
    return "" if half == "all" else f" of half {half!r}"


def score_stage(
    stage: str, gold: GoldMaterial, result: StageResult, *, errors: bool = False
) -> tuple[tuple[Measure, ...], list[str]]:
    """Return how well an engine did a stage, and notes on lines that nothing was compared with."""
    names, items, notes = list[str](), list[NamedItem](), list[str]()
    for file, check in FILE_CHECKS.items():
        lines = gold.gold[file]
        if check.stage != stage or not lines:
            continue
        names += LINES[file].measures.split()
        pairs = list(check.pairs(gold, result))
        for root, line, answer in pairs:
            items += check.compare(root, line, answer, gold.config)
        # A line about roles without images is not compared.
        lines = tuple(line for line in lines if getattr(line, "pictures", True))
        compared_count = len({id(line) for _, line, _ in pairs if line is not None})
        if compared_count < len(lines):
            notes.append(
                f"{len(lines) - compared_count} of {len(lines)} lines of {file}.jsonl are not in "
                "the figures, such as those of Trash, of samples without roles, of posts of no "
                "sample, or of images that are not there"
            )
    return summarize(stage, names, items, errors=errors), notes
