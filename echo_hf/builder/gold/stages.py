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
from echo_hf.builder.gold.measures import Compared, Item, judged, similarity
from echo_hf.builder.gold.posts import GoldPosts, Row, dataset
from echo_hf.builder.steps import STAGES
from echo_hf.config.loading import Config
from echo_hf.errors import GoldError, StageError, unknown
from echo_hf.pipeline.result import StageResult, sort_rows
from echo_hf.samples.boxes import Pixels, box_text, intersection_over_union
from echo_hf.samples.extract import Extract
from echo_hf.samples.shown_images import images_of
from echo_hf.samples.spans import squeezed
from echo_hf.samples.tasks import Task, rows_of
from echo_hf.samples.thread_parts import (
    LONGEST_FEEDBACK,
    ExtractAnswer,
    PostFeedback,
    SampleAnswer,
    parts,
    rendered,
)
from echo_hf.tables import THREADS

ONE_PART = 1_000_000_000
TRASH = "Trash"  # what no stage after `extract` is asked about
Key = tuple[str, str]  # names a sample: the root of its thread, and its prompt, squeezed


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
        """The posts that people scored, as `relevance` reads them."""
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
            tasks = list(_tasks(row, line_of[sample_key(row)], self.posts))
            made += rows_of(row, tasks, {}) if tasks and row["output_images"] else [row]
        return made

    @property
    def shots(self) -> list[Row]:
        """Those that show a conversation or a collage, as `screenshots` reads them."""
        return [row for row in self.judged if row["screenshot"]]

    @property
    def asked(self) -> list[Row]:
        """Those that `feedback` and `safety` ask about."""
        return [row for row in self.judged if row["quality"] != TRASH]

    @cached_property
    def roles(self) -> dict[Key, ImageRoles]:
        digest, line_of = self.posts.digest, {line.key: line for line in self.gold["roles"]}
        # An image that a sample does not use may stand in the line of another one of its thread.
        every = (one for line in line_of.values() for one in line.pictures)
        role_at = {(one.post_url, digest(one)): one.role for one in every}
        made: dict[Key, ImageRoles] = {}
        for row in self.samples:
            urls = {one.sha256: row["context"][one.post]["url"] for one in images_of(row)}
            if not urls or row["quality"] == TRASH:
                continue
            key = sample_key(row)
            groups = (_digests(some, self.posts, urls) for some in line_of[key].screenshots)
            filled = [(digest(one.output), folded(one.prompt)) for one in line_of[key].filled]
            made[key] = ImageRoles(
                {one: role_at[url, one] for one, url in urls.items() if (url, one) in role_at},
                {frozenset(group) for group in groups if group},
                {(one, prompt) for one, prompt in filled if one and one in urls},
                {one: self._place(url, one) for one, url in urls.items()},
            )
        return made

    def _place(self, url: str, digest: str) -> str:
        placed = self.posts.images[url]
        return f"{url} image {placed.index(digest) if digest in placed else digest}"

    def beside(self, name: str, found: Mapping[str, Row]) -> list[tuple[Any, Row | None]]:
        """The lines about samples of a file, each with the row that an engine answered."""
        line_of = {line.key: line for line in self.gold[name]}
        keyed = ((sample_key(row), row["id"]) for row in self.asked)
        return [(line_of[key], found.get(id_)) for key, id_ in keyed if key in line_of]


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


def _tasks(row: Row, line: RolesLine, posts: GoldPosts) -> Iterator[Task]:
    candidates = set(row["output_images"])
    inputs, outputs = (
        _digests((one for one in line.pictures if one.role == role), posts, candidates)
        for role in ("input", "output")
    )
    if not line.filled:
        shots = (one for one, *_ in line.screenshots)
        shot = next(iter(_digests(shots, posts, candidates)), None)
        yield Task(row["prompt"], inputs=inputs, outputs=outputs, screenshot=shot)
    filled: dict[str, Task] = {}
    for one in line.filled:
        blanks = tuple(one.blanks.items()) or (("", ""),)  # without a blank it would be no filling
        task = filled.setdefault(one.prompt, Task(one.prompt, blanks, list(inputs)))
        task.outputs += _digests([one.output], posts, candidates)
    yield from (task for task in filled.values() if task.outputs)


def _digests(images: Iterable[ImageAt], posts: GoldPosts, candidates: Collection[str]) -> list[str]:
    found = dict.fromkeys(posts.digest(one) for one in images)
    return [one for one in found if one and one in candidates]


def compare_scores(
    lines: Iterable[RelevanceLine],
    found: Mapping[str, int],
    keep: Collection[int],
    root_of: Mapping[str, str],
) -> Iterator[Compared]:
    for line in lines:
        given = found.get(line.url)
        right = line.acceptable or (line.score,)
        said = None if given is None else str(given)
        at = root_of[line.url], line.url
        yield "score_accuracy", judged(*at, map(str, right), said)
        if len({score in keep for score in right}) > 1:
            for side in ("keep", "drop"):
                yield from ((f"{side}_precision", None), (f"{side}_recall", None))
            continue
        side = "keep" if line.score in keep else "drop"
        claimed = None if given is None else "keep" if given in keep else "drop"
        item = judged(*at, {side}, claimed)
        yield f"{side}_recall", item
        if claimed:
            yield f"{claimed}_precision", item


FEEDBACK, NO_FEEDBACK = "feedback", "no feedback of this sample"


def compare_samples(
    lines: Iterable[ExtractLine], found: Mapping[str, Sequence[Row]]
) -> Iterator[Compared]:
    """Compares the samples of threads; a thread that is not among those found has no answer."""
    for line in lines:
        root, answered = line.root_url, line.root_url in found
        pairs = list(_paired_samples(line.samples, found.get(root, ())))
        doubtful = set[str]()
        for gold, _ in pairs:
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
    at = root, gold.post_urls[0]
    right = gold.acceptable or (gold.quality,)
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


def compare_roles(
    gold: Mapping[Key, ImageRoles], found: Mapping[Key, ImageRoles]
) -> Iterator[Compared]:
    for key, one in gold.items():
        mine, root = found.get(key), key[0]
        for digest, place in one.places.items():
            given = mine.roles.get(digest, "neither") if mine else None
            right = one.roles.get(digest)
            item = judged(root, place, {right}, given) if right else None
            yield "picture_role_accuracy", item
        for group in one.screenshots:
            seen = _shot(group, mine.screenshots) if mine else None
            place = min(one.places[digest] for digest in group)
            yield "screenshot_recall", judged(root, place, {SCREENSHOT}, seen)
        for digest, prompt in one.completions:
            read = mine.prompts(digest) if mine else set()
            given = prompt if prompt in read else min(read, default="")
            item = judged(root, one.places[digest], {prompt}, given if mine else None)
            yield "blanks_filled", item
        for group in mine.screenshots if mine else ():
            place = min(one.places.get(digest, digest) for digest in group)
            item = judged(root, place, {_shot(group, one.screenshots)}, SCREENSHOT)
            yield "screenshot_precision", item
        for digest, prompt in mine.completions if mine else ():
            expected = one.prompts(digest) or {"no completion"}
            item = judged(root, one.places.get(digest, digest), expected, prompt)
            yield "completion_precision", item


SCREENSHOT, NO_SCREENSHOT = "screenshot", "no screenshot"


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


def compare_screenshots(
    every: Iterable[tuple[str, ScreenshotLine | None, Row | None]],
) -> Iterator[Compared]:
    """Compares boxes, roles and prompts of screenshots; each with the root of its thread."""
    for root, line, mine in every:
        if line is None:
            yield "box_iou", None
            continue
        place = f"{line.post_url} image {line.index}"
        wanted = _with_roles(line.inputs, line.outputs)
        given = _with_roles(mine["input_bboxs"], mine["output_bboxs"]) if mine else []
        # Boxes that people drew are paired with the engine's so that all share most in sum.
        shared = np.zeros((len(wanted), len(given)))
        for (a, (_, own)), (b, (_, box)) in product(enumerate(wanted), enumerate(given)):
            shared[a, b] = intersection_over_union(own, box)
        rows, columns = linear_sum_assignment(shared, maximize=True)
        pairs = {int(a): int(b) for a, b in zip(rows, columns, strict=True) if shared[a, b] > 0}
        right: dict[int, str] = {}
        for number, (role, box) in enumerate(wanted):
            other, text = pairs.get(number), box_text(box)
            drawn = "" if other is None else box_text(given[other][1])
            overlap = None if other is None else float(shared[number, other])
            found = overlap is not None and overlap >= FOUND_FROM
            yield "box_iou", Item(root, place, text, drawn, overlap)
            score = float(found) if mine else None
            yield "box_recall", Item(root, place, text, (drawn or NO_BOX) if mine else "", score)
            said = given[other][0] if other is not None and found else None
            yield "role_accuracy", judged(root, f"{place} {text}", {role}, said)
            if other is not None and found:
                right[other] = text
        for number, (_, box) in enumerate(given):
            item = root, place, right.get(number, NO_BOX), box_text(box), float(number in right)
            yield "box_precision", Item(*item)
        read = json.loads(mine["provenance"])["screenshots"]["prompt_read"] if mine else None
        alike = None if read is None else similarity(line.prompt, read)
        yield "prompt_similarity", Item(root, place, line.prompt, read or "", alike)


def _with_roles(
    inputs: Iterable[Iterable[float]], outputs: Iterable[Iterable[float]]
) -> list[tuple[str, Pixels]]:
    both = (("input", inputs), ("output", outputs))
    return [(role, tuple(map(int, box))) for role, boxes in both for box in boxes]  # type: ignore[misc]


NO_IMAGE, NO_KEYWORD = "no image asked for", "no keyword"


def compare_verdicts(
    lines: Iterable[FeedbackLine], found: Mapping[str, Row], root_of: Mapping[str, str]
) -> Iterator[Compared]:
    for line in lines:
        said = found.get(line.post_url)
        at = root_of[line.post_url], line.post_url
        right = line.acceptable or (line.verdict,)
        yield "verdict_accuracy", judged(*at, right, said["verdict"] if said else None)
        if line.keywords:
            given = folded(said["keyword"] or "") if said else ""
            score = float(given in line.keywords) if given else None
            told = given or (NO_KEYWORD if said else "")
            yield "keyword_accuracy", Item(*at, " or ".join(sorted(line.keywords)), told, score)


def compare_tasks(rows: Iterable[tuple[TaskLine, Row | None]]) -> Iterator[Compared]:
    """Compares what samples ask for; each completion of a template is one."""
    for line, said in rows:
        at = line.root_url, line.prompt
        for name, right in (("kind", (line.kind,)), ("task", line.acceptable or (line.task,))):
            given = said[name] or NO_IMAGE if said else None
            yield f"{name}_accuracy", judged(*at, right, given)


def compare_safety(
    rows: Iterable[tuple[SafetyLine, Row | None]], remove: Collection[str]
) -> Iterator[Compared]:
    for line, said in rows:
        at = line.root_url, line.prompt
        side = "keep" if set(line.categories).isdisjoint(remove) else "remove"
        given = None if said is None else "remove" if said["has_nsfw"] else "keep"
        item = judged(*at, {side}, given)
        yield "keep_recall" if side == "keep" else "removal_recall", item
        if given == "remove":
            yield "removal_precision", item
        named = said["safety"]["categories"] if said else ()
        for code in line.categories:
            told = ", ".join(named) or "no hazard"
            score = float(code in named) if said else None
            yield "hazard_recall", Item(*at, code, told if said else "", score)


def _relevance(given: Material, said: StageResult) -> Iterator[Compared]:
    scores = {row["url"]: (row["relevance"] or {}).get("score") for row in said.dataset.to_list()}
    found = {url: score for url, score in scores.items() if score is not None}
    keep = given.config.stages.relevance.keep
    return compare_scores(given.gold["relevance"], found, keep, given.posts.root_of)


def _extract(given: Material, said: StageResult) -> Iterator[Compared]:
    waiting = set(said.quarantine["root_url"])
    roots = (row["root_url"] for row in given.threads)
    found: dict[str, list[Row]] = {root: [] for root in roots if root not in waiting}
    for row in said.dataset.to_list():
        found[given.posts.root_of[row["post_urls"][0]]].append(row)
    return compare_samples(given.gold["extract"], found)


def _screenshots(given: Material, said: StageResult) -> Iterator[Compared]:
    root_of, digest = given.posts.root_of, given.posts.digest
    line_of = {(root_of[one.post_url], digest(one)): one for one in given.gold["screenshots"]}
    answered = _answered(said, "screenshots")
    keys = ((row["id"], sample_key(row)[0], row["screenshot"]) for row in given.shots)
    return compare_screenshots(
        (root, line_of.get((root, shot)), answered.get(id_)) for id_, root, shot in keys
    )


def _feedback(given: Material, said: StageResult) -> Iterator[Compared]:
    heard = {url for row in given.asked for url in _heard(row)}
    lines = [line for line in given.gold["feedback"] if line.post_url in heard]
    every = (one for row in said.dataset.to_list() for one in row["community_feedback"])
    found = {one["post_url"]: one for one in every if one["verdict"] is not None}
    yield from compare_verdicts(lines, found, given.posts.root_of)
    yield from compare_tasks(given.beside("tasks", _answered(said, "feedback")))


def _safety(given: Material, said: StageResult) -> Iterator[Compared]:
    found = {row["id"]: row for row in said.dataset.to_list() if row["has_nsfw"] is not None}
    return compare_safety(given.beside("safety", found), given.config.stages.safety.remove)


def _answered(said: StageResult, stage: str) -> dict[str, Row]:
    rows = said.dataset.to_list()
    return {row["id"]: row for row in rows if json.loads(row["provenance"]).get(stage)}


class Check(NamedTuple):
    """A stage: gold files that its input is made of, and those that answers are compared with."""

    needs: tuple[str, ...]
    files: tuple[str, ...]
    read: Callable[[Material], Iterable[Row]]
    compare: Callable[[Material, StageResult], Iterator[Compared]]

    def lacks(self, gold: Gold, half: str) -> str:
        """Which gold files are missing for it, or have no line."""
        every = [*((name,) for name in self.needs), self.files]
        lacking = [files for files in every if not any(gold[name] for name in files)]
        absent = [" or ".join(some) for some in lacking if gold.keys().isdisjoint(some)]
        empty = [" or ".join(some) for some in lacking if not gold.keys().isdisjoint(some)]
        said = [f"there is no {', '.join(absent)} (.jsonl)"] if absent else []
        return ", and ".join([*said, *([_no_line(empty, half)] if empty else [])])


def _no_line(files: Sequence[str], half: str) -> str:
    of = "" if half == "all" else f" of half {half!r}"
    return f"there is no line{of} in {', '.join(files)} (.jsonl)"


SAMPLES = ("extract", "roles")
CHECKS: Mapping[str, Check] = {
    "relevance": Check((), ("relevance",), lambda given: given.scored, _relevance),
    "extract": Check((), ("extract",), lambda given: given.threads, _extract),
    "roles": Check(
        ("extract",),
        ("roles",),
        lambda given: given.samples,
        lambda given, said: compare_roles(given.roles, found_roles(said.dataset.to_list())),
    ),
    "screenshots": Check(SAMPLES, ("screenshots",), lambda given: given.shots, _screenshots),
    "feedback": Check(SAMPLES, ("feedback", "tasks"), lambda given: given.judged, _feedback),
    "safety": Check(SAMPLES, ("safety",), lambda given: given.judged, _safety),
}


def check_names(stages: Sequence[str] | None) -> None:
    """Refuses names of what cannot be checked, whatever gold there is."""
    every = ", ".join(CHECKS)
    if stages is not None and not stages:
        raise StageError(
            f"stages {stages!r} would check nothing: expected some of {every}, or "
            "None for all that there is gold for"
        )
    for name in stages or ():
        if name in STAGES and name not in CHECKS:
            raise StageError(f"stage {name!r} asks no model: expected one that does, {every}")
        if name not in CHECKS:
            raise StageError(unknown("stage to check", name, CHECKS))


def chosen_stages(
    gold: Gold, half: str, stages: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """The stages to check, and notes on what is not."""
    chosen, notes = [], []
    for name, check in CHECKS.items():
        if stages is not None and name not in stages:
            continue
        why = check.lacks(gold, half)
        if why and stages is not None:
            raise GoldError(f"stage {name!r} cannot be checked: {why}")
        chosen += [] if why else [name]
        if why:
            notes.append(f"{name} is not checked: {why}")
        elif empty := [file for file in check.files if gold.get(file) == ()]:
            notes.append(f"{name} is not compared with {empty[0]}: {_no_line(empty, half)}")
    return chosen, notes


WITHOUT_ROLES = (
    "{} of {} samples have no line in roles.jsonl: they are not in the figures of roles, safety "
    "and feedback"
)
ABSENT = "{} of {} images with a role are not there: they are left out"
NOT_SHOWN = (
    "roles is not shown {} of {} %s, such as those of Trash, of posts of no sample, or of a file "
    "given twice: they are not in its figures"
)
NOT_ASKED = (
    "%s is not asked about {} of {} %s, such as those of Trash or of samples without roles: they "
    "are not in its figures"
)


def left_out(given: Material, stages: Collection[str]) -> Iterator[str]:
    """Says what gold holds that cannot be compared."""
    if {"roles", "safety", "feedback"}.isdisjoint(stages):
        return
    lines: Sequence[RolesLine] = given.gold["roles"]
    looked_at = {line.key for line in lines}
    keys = [key for line in given.gold["extract"] for key in line.keys]
    named = [one for line in lines for one in line.pictures]
    there = [one for one in named if given.posts.digest(one)]
    counts = [
        (WITHOUT_ROLES, sum(key in looked_at for key in keys), len(keys)),
        (ABSENT, len(there), len(named)),
    ]
    if "roles" in stages:
        shown = given.roles.values()
        every = (one for line in lines for one in line.filled)
        filled = {(one.output.post_url, one.output.index, folded(one.prompt)) for one in every}
        for what, kept, count in (
            ("images with a role", "roles", len({(one.post_url, one.index) for one in there})),
            ("completions", "completions", len(filled)),
            (
                "conversations and collages",
                "screenshots",
                sum(len(line.screenshots) for line in lines),
            ),
        ):
            counts.append((NOT_SHOWN % what, sum(len(getattr(one, kept)) for one in shown), count))
    asked = {sample_key(row) for row in given.asked}
    heard = {(url,) for row in given.asked for url in _heard(row)}
    for stage, file, what, known in (
        ("safety", "safety", "samples", asked),
        ("feedback", "feedback", "verdicts", heard),
        ("feedback", "tasks", "tasks", asked),
    ):
        if stage in stages:
            keys = [line.key for line in given.gold[file]]
            counts.append((NOT_ASKED % (stage, what), sum(key in known for key in keys), len(keys)))
    yield from (said.format(count - kept, count) for said, kept, count in counts if kept < count)
