"""What each stage reads when those before it are right, and how its answers are compared."""

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
    ExtractLine,
    FeedbackLine,
    Gold,
    GoldSample,
    ImageAt,
    RelevanceLine,
    RolesLine,
    SafetyLine,
    ScreenshotLine,
    TaskLine,
    folded,
)
from echo_hf.builder.gold.measures import Compared, Item, Measure, judged, measured, similarity
from echo_hf.builder.gold.posts import GoldPosts, Row, dataset
from echo_hf.config.loading import Config
from echo_hf.errors import GoldError, StageError, unknown
from echo_hf.pipeline.result import StageResult, sort_rows
from echo_hf.samples.boxes import box_text, intersection_over_union
from echo_hf.samples.extract import (
    LONGEST_FEEDBACK,
    Extract,
    ExtractAnswer,
    PostFeedback,
    SampleAnswer,
    parts,
    rendered,
)
from echo_hf.samples.spans import squeezed
from echo_hf.samples.tasks import Task, images_of, rows_of
from echo_hf.tables import THREADS

ONE_PART = 1_000_000_000
TRASH = "Trash"  # what no stage after `extract` is asked about
Key = tuple[str, str]  # names a sample: the root of its thread, and its prompt, squeezed
Pair = tuple[str, Any, Any]  # the root of a thread, what people say, what an engine answered


def sample_key(row: Row) -> Key:
    root, prompt = json.loads(row["provenance"])["gold"]
    return root, prompt


@dataclass(frozen=True)
class ImageRoles:
    """What the images of a sample are, by their digests, as people or an engine say."""

    roles: dict[str, str]
    screenshots: set[frozenset[str]]  # people's with all that show the same conversation
    completions: set[tuple[str, str]]  # an image, and the filled prompt, folded
    places: Mapping[str, str]  # what messages call each image that is shown

    def prompts(self, digest: str) -> set[str]:
        return {prompt for one, prompt in self.completions if one == digest}


@dataclass(frozen=True)
class Material:
    config: Config
    gold: Gold
    posts: GoldPosts

    @property
    def scored(self) -> list[Row]:
        wanted = {line.url for line in self.gold["relevance"]}
        rows = (row for row in self.posts.posts if row["url"] in wanted)
        # An empty list would keep the stage from asking.
        return [{**row, "keywords": row["keywords"] or None} for row in rows]

    @cached_property
    def threads(self) -> list[Row]:
        """The threads whose samples people wrote down, as `extract` reads them."""
        wanted = {line.root_url for line in self.gold["extract"]}
        return [row for row in self.posts.threads if row["root_url"] in wanted]

    @cached_property
    def samples(self) -> list[Row]:
        """The samples that people wrote down, in context, as `roles` reads them."""
        if not self.threads:
            return []
        stage, threads = Extract(self.config.target, ONE_PART), dataset(THREADS, self.threads)
        said = {line.root_url: line.samples for line in self.gold["extract"]}
        answers: list[list[Any]] = [
            [
                _answer(said[row["root_url"]], row["posts"], some)
                for some in parts(rendered(row["posts"], ONE_PART), ONE_PART)
            ]
            for row in self.threads
        ]
        made = Dataset(stage.finish(threads.with_format("arrow")[:], answers))
        wanted, root_of = {line.key for line in self.gold["roles"]}, self.posts.root_of
        return [
            {**row, "provenance": json.dumps({"gold": key})}
            for row in sort_rows(stage, threads, made).dataset.to_list()
            if (key := (root_of[row["post_urls"][0]], squeezed(row["prompt"]))) in wanted
        ]

    @cached_property
    def judged(self) -> list[Row]:
        """The samples with the roles that people gave their images, as `feedback` reads them."""
        line_of = {line.key: line for line in self.gold["roles"]}
        made: list[Row] = []
        for row in self.samples:
            tasks = list(self._tasks(row, line_of[sample_key(row)]))
            made += rows_of(row, tasks, {}) if tasks and row["output_images"] else [row]
        return made

    @property
    def shots(self) -> list[Row]:
        """Those that show a conversation or a collage, as `screenshots` reads them."""
        return [row for row in self.judged if row["screenshot"]]

    @property
    def asked(self) -> list[Row]:
        return [row for row in self.judged if row["quality"] != TRASH]

    @cached_property
    def roles(self) -> dict[Key, ImageRoles]:
        line_of = {line.key: line for line in self.gold["roles"]}
        # An image that a sample does not use may stand in the line of another one of its thread.
        every = (one for line in line_of.values() for one in line.pictures)
        role_at = {(one.post_url, self.posts.digest(one)): one.role for one in every}
        made: dict[Key, ImageRoles] = {}
        for row in self.samples:
            urls = {one.sha256: row["context"][one.post]["url"] for one in images_of(row)}
            if not urls or row["quality"] == TRASH:
                continue
            key = sample_key(row)
            groups = (self._digests(some, urls) for some in line_of[key].screenshots)
            filled = {
                (digest, folded(one.prompt))
                for one in line_of[key].filled
                for digest in self._digests([one.output], urls)
            }
            made[key] = ImageRoles(
                {one: role_at[url, one] for one, url in urls.items() if (url, one) in role_at},
                {frozenset(group) for group in groups if group},
                filled,
                {one: self._place(url, one) for one, url in urls.items()},
            )
        return made

    def _place(self, url: str, digest: str) -> str:
        placed = self.posts.images[url]
        return f"{url} image {placed.index(digest) if digest in placed else digest}"

    def _digests(self, images: Iterable[ImageAt], candidates: Collection[str]) -> list[str]:
        found = dict.fromkeys(self.posts.digest(one) for one in images)
        return [one for one in found if one and one in candidates]

    def _tasks(self, row: Row, line: RolesLine) -> Iterator[Task]:
        candidates = set(row["output_images"])
        inputs, outputs = (
            self._digests((one for one in line.pictures if one.role == role), candidates)
            for role in ("input", "output")
        )
        if not line.filled:
            shots = self._digests((one for one, *_ in line.screenshots), candidates)
            shot = next(iter(shots), None)
            yield Task(row["prompt"], inputs=inputs, outputs=outputs, screenshot=shot)
        filled: dict[str, Task] = {}
        for one in line.filled:
            # Without a blank it would be no filling.
            blanks = tuple(one.blanks.items()) or (("", ""),)
            task = filled.setdefault(one.prompt, Task(one.prompt, blanks, list(inputs)))
            task.outputs += self._digests([one.output], candidates)
        yield from (task for task in filled.values() if task.outputs)


def _answer(
    samples: Iterable[GoldSample], posts: Sequence[Row], some: Iterable[int]
) -> ExtractAnswer:
    number = {posts[place]["url"]: place for place in some}
    text = {place: (posts[place]["text"] or "").strip() for place in number.values()}
    made = [
        SampleAnswer(
            prompt=sample.prompt,
            quality=sample.quality,
            posts=[number[url] for url in sample.post_urls if url in number],
            feedback=[
                PostFeedback(post=place, feedback=text[place][:LONGEST_FEEDBACK])
                for place in sorted(number[url] for url in {*sample.heard} & {*number})
            ],
        )
        for sample in samples
        if sample.post_urls[0] in number
    ]
    return ExtractAnswer(samples=made)


# How an answer is compared: of each gold file, one line beside what an engine answered, null where
# there is no answer.


def compare_score(
    root: str, line: RelevanceLine, given: int | None, config: Config
) -> Iterator[Compared]:
    keep, right = config.stages.relevance.keep, {line.score, *line.acceptable}
    said = None if given is None else str(given)
    yield "score_accuracy", judged(root, line.url, map(str, right), said)
    if len({score in keep for score in right}) > 1:
        for name in ("keep_precision", "keep_recall", "drop_precision", "drop_recall"):
            yield name, None
        return
    side = "keep" if line.score in keep else "drop"
    claimed = None if given is None else "keep" if given in keep else "drop"
    item = judged(root, line.url, {side}, claimed)
    yield f"{side}_recall", item
    if claimed:
        yield f"{claimed}_precision", item


FEEDBACK, NO_FEEDBACK = "feedback", "no feedback of this sample"


def compare_samples(
    root: str, line: ExtractLine, found: Sequence[Row] | None, _: Config
) -> Iterator[Compared]:
    answered = found is not None
    pairs = list(_paired_samples(line.samples, found or ()))
    doubtful = set[str]()
    for gold, _row in pairs:
        if gold:
            doubtful.update(gold.feedback_optional, () if _counts(gold) else gold.feedback)
    for gold, mine in pairs:
        if gold:
            yield from _wanted_sample(root, gold, mine, answered)
        if mine is None or mine["quality"] == TRASH:
            continue
        right = gold is not None and _counts(gold)
        if gold and not right and (gold.optional or {*gold.acceptable} - {TRASH}):
            continue
        place = gold.post_urls[0] if gold else mine["post_urls"][0]
        expected = gold.prompt if gold and right else "no sample"
        yield "sample_precision", Item(root, place, expected, mine["prompt"], float(right))
        for url in _heard(mine):
            if url not in doubtful:
                listed = FEEDBACK if gold and url in gold.feedback else NO_FEEDBACK
                yield "feedback_precision", judged(root, url, {listed}, FEEDBACK)


def _counts(gold: GoldSample) -> bool:
    return not gold.optional and gold.quality != TRASH


def _heard(row: Row) -> list[str]:
    return [one["post_url"] for one in row["community_feedback"]]


def _wanted_sample(
    root: str, gold: GoldSample, mine: Row | None, answered: bool
) -> Iterator[Compared]:
    at, right = (root, gold.post_urls[0]), {gold.quality, *gold.acceptable}
    if _counts(gold) or (mine and not gold.optional):
        yield "quality_accuracy", judged(*at, right, mine["quality"] if mine else None)
    if not _counts(gold):
        return
    # What is found as Trash goes no further.
    finds = mine if mine and (mine["quality"] != TRASH or TRASH in right) else None
    alike = similarity(gold.prompt, finds["prompt"]) if finds else None
    compared = *at, gold.prompt, mine["prompt"] if mine else ""
    yield "sample_recall", Item(*compared, float(finds is not None) if answered else None)
    yield "prompt_similarity", Item(*compared, alike)
    yield "prompts_exact", Item(*compared, None if alike is None else float(alike == 1))
    for url in gold.feedback:
        heard = FEEDBACK if finds and url in _heard(finds) else NO_FEEDBACK
        yield "feedback_recall", judged(root, url, {FEEDBACK}, heard if answered else None)


def _paired_samples(
    gold: Sequence[GoldSample], found: Sequence[Row]
) -> Iterator[tuple[GoldSample | None, Row | None]]:
    """Those with the same primary post, the most similar prompts first; then what is left."""
    candidates = []
    for one, other in product(gold, found):
        if one.post_urls[0] == other["post_urls"][0]:
            prompt, quality = other["prompt"], other["quality"]
            alike = -similarity(one.prompt, prompt), squeezed(one.prompt)
            order = (quality == TRASH, *alike, prompt, quality, _heard(other))
            candidates.append((order, one, other))
    taken: set[int] = set()
    for _, one, other in sorted(candidates, key=itemgetter(0)):
        if taken.isdisjoint((id(one), id(other))):
            taken |= {id(one), id(other)}
            yield one, other
    yield from ((one, None) for one in gold if id(one) not in taken)
    yield from ((None, one) for one in found if id(one) not in taken)


SCREENSHOT, NO_SCREENSHOT = "screenshot", "no screenshot"


def compare_roles(
    root: str, line: ImageRoles, found: ImageRoles | None, _: Config
) -> Iterator[Compared]:
    places = line.places
    for digest, place in places.items():
        given = found.roles.get(digest, "neither") if found else None
        right = line.roles.get(digest)
        yield "picture_role_accuracy", judged(root, place, {right}, given) if right else None
    for group in line.screenshots:
        seen = _shot(group, found.screenshots) if found else None
        place = min(places[digest] for digest in group)
        yield "screenshot_recall", judged(root, place, {SCREENSHOT}, seen)
    for digest, prompt in line.completions:
        read = found.prompts(digest) if found else set()
        given = prompt if prompt in read else min(read, default="")
        yield "blanks_filled", judged(root, places[digest], {prompt}, given if found else None)
    for group in found.screenshots if found else ():
        place = min(places.get(digest, digest) for digest in group)
        item = judged(root, place, {_shot(group, line.screenshots)}, SCREENSHOT)
        yield "screenshot_precision", item
    for digest, prompt in found.completions if found else ():
        expected = line.prompts(digest) or {"no completion"}
        yield "completion_precision", judged(root, places.get(digest, digest), expected, prompt)


def _shot(group: frozenset[str], others: Iterable[frozenset[str]]) -> str:
    return SCREENSHOT if any(group & other for other in others) else NO_SCREENSHOT


def found_roles(rows: Iterable[Row]) -> dict[Key, ImageRoles]:
    """What `roles` made of each sample's images; one that waits for its answer is left out."""
    found: dict[Key, ImageRoles] = {}
    for row in rows:
        mine = found.setdefault(sample_key(row), ImageRoles({}, set(), set(), {}))
        outputs, shots = row["output_images"], [row["screenshot"]] if row["screenshot"] else []
        for digest in row["input_images"]:
            mine.roles.setdefault(digest, "input")
        mine.roles.update(dict.fromkeys(outputs, "output"))
        mine.screenshots.update(frozenset([digest]) for digest in shots)
        if row["prompt_fill_blank"]:
            prompt = folded(row["prompt"])
            mine.completions.update((digest, prompt) for digest in outputs or shots)
    return found


FOUND_FROM = 0.5
NO_BOX = "no box"


def compare_screenshot(
    root: str, line: ScreenshotLine | None, found: Row | None, _: Config
) -> Iterator[Compared]:
    if line is None:
        yield "box_iou", None
        return
    place = f"{line.post_url} image {line.index}"
    wanted = _with_roles(line.inputs, line.outputs)
    given = _with_roles(found["input_bboxs"], found["output_bboxs"]) if found else []
    # Boxes that people drew are paired with the engine's so that all share most in sum.
    shared = np.zeros((len(wanted), len(given)))
    for (a, (_role, own)), (b, (_role, box)) in product(enumerate(wanted), enumerate(given)):
        shared[a, b] = intersection_over_union(own, box)
    rows, columns = linear_sum_assignment(shared, maximize=True)
    pairs = {int(a): int(b) for a, b in zip(rows, columns, strict=True) if shared[a, b] > 0}
    right: dict[int, str] = {}
    for number, (role, box) in enumerate(wanted):
        other, text = pairs.get(number), box_text(box)
        drawn, overlap, said = "", None, None
        if other is not None:
            drawn, overlap = box_text(given[other][1]), float(shared[number, other])
            if overlap >= FOUND_FROM:
                said, right[other] = given[other][0], text
        yield "box_iou", Item(root, place, text, drawn, overlap)
        score = float(said is not None) if found else None
        yield "box_recall", Item(root, place, text, (drawn or NO_BOX) if found else "", score)
        yield "role_accuracy", judged(root, f"{place} {text}", {role}, said)
    for number, (_role, box) in enumerate(given):
        expected, is_right = right.get(number, NO_BOX), float(number in right)
        yield "box_precision", Item(root, place, expected, box_text(box), is_right)
    read = json.loads(found["provenance"])["screenshots"]["prompt_read"] if found else None
    alike = None if read is None else similarity(line.prompt, read)
    yield "prompt_similarity", Item(root, place, line.prompt, read or "", alike)


def _with_roles(inputs: Iterable[Any], outputs: Iterable[Any]) -> list[tuple[str, Any]]:
    both = (("input", inputs), ("output", outputs))
    return [(role, tuple(map(int, box))) for role, boxes in both for box in boxes]


def compare_verdict(
    root: str, line: FeedbackLine, found: Row | None, _: Config
) -> Iterator[Compared]:
    at, right = (root, line.post_url), {line.verdict, *line.acceptable}
    yield "verdict_accuracy", judged(*at, right, found["verdict"] if found else None)
    if line.keywords:
        given = folded(found["keyword"] or "") if found else ""
        score = float(given in line.keywords) if given else None
        told = given or ("no keyword" if found else "")
        yield "keyword_accuracy", Item(*at, " or ".join(sorted(line.keywords)), told, score)


def compare_task(root: str, line: TaskLine, found: Row | None, _: Config) -> Iterator[Compared]:
    for name, right in (("kind", {line.kind}), ("task", {line.task, *line.acceptable})):
        given = found[name] or "no image asked for" if found else None
        yield f"{name}_accuracy", judged(root, line.prompt, right, given)


def compare_safety(
    root: str, line: SafetyLine, found: Row | None, config: Config
) -> Iterator[Compared]:
    at = root, line.prompt
    harmless = set(line.categories).isdisjoint(config.stages.safety.remove)
    given = None if found is None else "remove" if found["has_nsfw"] else "keep"
    item = judged(*at, {"keep" if harmless else "remove"}, given)
    yield "keep_recall" if harmless else "removal_recall", item
    if given == "remove":
        yield "removal_precision", item
    named = found["safety"]["categories"] if found else ()
    for code in line.categories:
        told = ", ".join(named) or "no hazard"
        score = float(code in named) if found else None
        yield "hazard_recall", Item(*at, code, told if found else "", score)


def _scores(given: Material, said: StageResult) -> Iterator[Pair]:
    found = {row["url"]: (row["relevance"] or {}).get("score") for row in said.dataset.to_list()}
    for line in given.gold["relevance"]:
        yield given.posts.root_of[line.url], line, found.get(line.url)


def _samples(given: Material, said: StageResult) -> Iterator[Pair]:
    waiting = set(said.quarantine["root_url"])
    found: dict[str, list[Row]] = {}
    for row in said.dataset.to_list():
        found.setdefault(given.posts.root_of[row["post_urls"][0]], []).append(row)
    for line in given.gold["extract"]:
        root = line.root_url
        yield root, line, None if root in waiting else found.get(root, [])


def _roles(given: Material, said: StageResult) -> Iterator[Pair]:
    found = found_roles(said.dataset.to_list())
    yield from ((key[0], one, found.get(key)) for key, one in given.roles.items())


def _shots(given: Material, said: StageResult) -> Iterator[Pair]:
    root_of, digest = given.posts.root_of, given.posts.digest
    line_of = {(root_of[one.post_url], digest(one)): one for one in given.gold["screenshots"]}
    answered = _answered(said, "screenshots")
    for row in given.shots:
        root, _ = sample_key(row)
        yield root, line_of.get((root, row["screenshot"])), answered.get(row["id"])


def _verdicts(given: Material, said: StageResult) -> Iterator[Pair]:
    every = (one for row in said.dataset.to_list() for one in row["community_feedback"])
    found = {one["post_url"]: one for one in every if one["verdict"] is not None}
    heard = {url for row in given.asked for url in _heard(row)}
    for line in given.gold["feedback"]:
        if line.post_url in heard:
            yield given.posts.root_of[line.post_url], line, found.get(line.post_url)


def _tasks(given: Material, said: StageResult) -> Iterator[Pair]:
    return _beside(given, "tasks", _answered(said, "feedback"))


def _hazards(given: Material, said: StageResult) -> Iterator[Pair]:
    rows = said.dataset.to_list()
    return _beside(given, "safety", {row["id"]: row for row in rows if row["has_nsfw"] is not None})


def _beside(given: Material, file: str, found: Mapping[str, Row]) -> Iterator[Pair]:
    line_of = {line.key: line for line in given.gold[file]}
    for row in given.asked:
        if line := line_of.get(sample_key(row)):
            yield line.root_url, line, found.get(row["id"])


def _answered(said: StageResult, stage: str) -> dict[str, Row]:
    rows = said.dataset.to_list()
    return {row["id"]: row for row in rows if json.loads(row["provenance"]).get(stage)}


class FileCheck(NamedTuple):
    """A gold file: what checks it, and how the answers are compared with its lines."""

    stage: str
    needs: tuple[str, ...]  # the files that the stage's input is made of
    reads: str  # what of the material is that input
    pairs: Callable[[Material, StageResult], Iterable[Pair]]
    compare: Callable[[str, Any, Any, Config], Iterator[Compared]]


SAMPLES = ("extract", "roles")
FILES = {
    "relevance": FileCheck("relevance", (), "scored", _scores, compare_score),
    "extract": FileCheck("extract", (), "threads", _samples, compare_samples),
    "roles": FileCheck("roles", ("extract",), "samples", _roles, compare_roles),
    "screenshots": FileCheck("screenshots", SAMPLES, "shots", _shots, compare_screenshot),
    "feedback": FileCheck("feedback", SAMPLES, "judged", _verdicts, compare_verdict),
    "tasks": FileCheck("feedback", SAMPLES, "judged", _tasks, compare_task),
    "safety": FileCheck("safety", SAMPLES, "judged", _hazards, compare_safety),
}
MEASURES = {
    "relevance": "keep_precision keep_recall drop_precision drop_recall score_accuracy",
    "extract": """sample_precision sample_recall prompt_similarity prompts_exact quality_accuracy
        feedback_precision feedback_recall""",
    "roles": """picture_role_accuracy screenshot_precision screenshot_recall completion_precision
        blanks_filled""",
    "screenshots": "box_iou box_precision box_recall role_accuracy prompt_similarity",
    "feedback": "verdict_accuracy keyword_accuracy",
    "tasks": "kind_accuracy task_accuracy",
    "safety": "removal_precision removal_recall keep_recall hazard_recall",
}
CHECKED = {one.stage: one for one in FILES.values()}


def chosen_stages(
    gold: Gold, half: str, stages: Collection[str] | None
) -> tuple[list[str], list[str]]:
    """The stages to check, and notes on what is not."""
    for name in stages or ():
        if name not in CHECKED:
            raise StageError(unknown("stage that asks a model", name, CHECKED))
    chosen, notes = [], []
    for name, check in CHECKED.items():
        if stages is not None and name not in stages:
            continue
        own = [file for file, one in FILES.items() if one.stage == name]
        needed = [*([file] for file in check.needs), own]
        lacking = [" or ".join(some) for some in needed if not any(gold[file] for file in some)]
        why = f"there is no line{of_half(half)} in {', '.join(lacking)} (.jsonl)"
        if lacking and stages is not None:
            raise GoldError(f"stage {name!r} cannot be checked: {why}")
        if lacking:
            notes.append(f"{name} is not checked: {why}")
        else:
            chosen.append(name)
    return chosen, notes


def of_half(half: str) -> str:
    return "" if half == "all" else f" of half {half!r}"


def scored(
    stage: str, given: Material, said: StageResult, *, errors: bool = False
) -> tuple[tuple[Measure, ...], list[str]]:
    """How well an engine did a stage, and notes on lines that nothing was compared with."""
    names, items, notes = list[str](), list[Compared](), list[str]()
    for file, check in FILES.items():
        lines = given.gold[file]
        if check.stage != stage or not lines:
            continue
        names += MEASURES[file].split()
        pairs = list(check.pairs(given, said))
        for root, line, answer in pairs:
            items += check.compare(root, line, answer, given.config)
        # A line about roles may name no image, and is then asked about nothing.
        lines = tuple(line for line in lines if getattr(line, "pictures", True))
        kept = len({id(line) for _, line, _ in pairs if line is not None})
        if kept < len(lines):
            notes.append(
                f"{len(lines) - kept} of {len(lines)} lines of {file}.jsonl are not in the "
                "figures, such as those of Trash, of samples without roles, of posts of no sample, "
                "or of images that are not there"
            )
    return measured(stage, names, items, errors=errors), notes
