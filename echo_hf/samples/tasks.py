"""What a model is shown of a sample, the tasks that it tells apart, and their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from echo_hf._infra.text import MARK, shortened
from echo_hf.engines.reference_images import asks_for_image, needs_image
from echo_hf.reasons import Doubt, Notice, Review
from echo_hf.samples.blanks import LONGEST_PLACEHOLDER, completed, placeholders
from echo_hf.samples.held_boxes import HeldBoxes
from echo_hf.samples.sample import (
    Finding,
    Sample,
    places_of,
    provenance_with,
    sample_digest,
    sample_id,
    texts_of,
)
from echo_hf.samples.spans import SpanIndex, span_start

MOST_IMAGES = 32  # of one request: no request shows more
MOST_POSTS = 64  # likewise
MOST_BLANKS = 32
LONGEST_VALUE = 1000

OF_ROLES = (Doubt.ROLES_CONTRADICT, Doubt.ROLES_ASSUMED, Doubt.COLLAGE)

Number = Annotated[int, Field(ge=0, le=999_999)]
ImageNumbers = Annotated[list[Number], Field(max_length=MOST_IMAGES)]
LONGEST_TEXT = 4000
LONGEST_TEXTS = 16_000  # of all posts and descriptions of a part together
Key = TypeVar("Key")
Fillings = tuple[tuple[str, str], ...]
Feedback = list[Mapping[str, Any]]


class FilledBlank(BaseModel):
    """A placeholder of a template, copied from it letter for letter, and what stands for it."""

    placeholder: Annotated[str, Field(min_length=1, max_length=LONGEST_PLACEHOLDER)]
    value: Annotated[str, Field(min_length=1, max_length=LONGEST_VALUE)]


class RolesSample(BaseModel):
    """One task: its pictures and posts, what fills its blanks, the screenshot it is read from.

    `may_show_minor` is null where nothing was said of it.
    """

    inputs: ImageNumbers
    outputs: ImageNumbers
    posts: Annotated[list[Number], Field(max_length=MOST_POSTS)]
    prompt_fill_blank: Annotated[list[FilledBlank], Field(max_length=MOST_BLANKS)] = []
    conversation: Number | None = None
    collage: Number | None = None
    may_show_minor: bool | None = None


class RolesAnswer(BaseModel):
    """What the pictures of a sample are; no sample where no coherent task can be made out."""

    samples: Annotated[list[RolesSample], Field(max_length=MOST_IMAGES)]
    # No model is asked for it: of an engine without one, which has seen no image.
    assumed: SkipJsonSchema[bool] = False


class AbsentImageAnswer(BaseModel):
    """Whether a sample starts from an image that is not among those shown; null if unclear."""

    needs_absent_image: bool | None = None


class SampleImage(NamedTuple):
    sha256: str
    post: int
    alt_text: str | None
    copy_of: str | None = None


@dataclass(frozen=True)
class RequestPart:
    """What one request shows.

    Attributes:
        posts: Places in the sample's context, by number from 0.
        own: Those of them that are the sample's own.
        images: By number less one, in the order of their posts.
    """

    posts: tuple[int, ...]
    own: frozenset[int]
    images: tuple[SampleImage, ...]

    def as_data(self, sample: Sample, placeholders: Sequence[str]) -> dict[str, Any]:
        context = sample["context"]
        written = [context[place]["text"] for place in self.posts]
        written += [one.alt_text for one in self.images]
        texts = iter(shortened(written, LONGEST_TEXT, LONGEST_TEXTS))
        authors: dict[str, str] = {}
        places = {place: number for number, place in enumerate(self.posts)}
        numbers = {one.sha256: number for number, one in enumerate(self.images, 1)}
        posts: list[dict[str, Any]] = [
            {
                "number": places[place],
                "parent": places.get(context[place]["parent"], -1),
                "author": context[place]["author"]
                and authors.setdefault(context[place]["author"], f"author {len(authors) + 1}"),
                "text": next(texts),
                "pictures": [n for n, one in enumerate(self.images, 1) if one.post == place],
                "own": place in self.own,
            }
            for place in self.posts
        ]
        images = []
        for number, one in enumerate(self.images, 1):
            image = {"number": number, "post": places[one.post], "alt_text": next(texts)}
            same = numbers.get(one.copy_of or "")
            images.append({**image, "same_as": same} if same else image)
        return {
            "prompt": sample["prompt"],
            "placeholders": list(placeholders),
            "posts": posts,
            "pictures": images,
        }


def _own_images(sample: Sample) -> Iterator[tuple[int, Mapping[str, Any]]]:
    own = set(sample["post_urls"])
    for place, post in enumerate(sample["context"]):
        for one in post["pictures"] if post["url"] in own else ():
            yield place, one


def images_of(sample: Sample) -> list[SampleImage]:
    """The images that are the sample's own, each once, in the order of its posts."""
    candidates, found = set(sample["output_images"]), dict[str, SampleImage]()
    for place, one in _own_images(sample):
        if one["sha256"] in candidates:
            image = SampleImage(one["sha256"], place, one["alt_text"], one["same_picture_of"])
            found.setdefault(one["sha256"], image)
    return list(found.values())


def lost_images(sample: Sample) -> Iterator[str]:
    """The images of a sample's own posts that could not be had: whether one is an input?"""
    for place, one in _own_images(sample):
        if one["sha256"] is None:
            yield one["url"] or one["alt_text"] or sample["context"][place]["url"]


def parts_of(sample: Sample, most_pictures: int) -> list[RequestPart]:
    """All images at once; of very many, those of the first post in each part, others in slices."""
    images = images_of(sample)
    if len(images) <= most_pictures:
        return [part_of(sample, images)] if images else []
    primary = places_of(sample)[0]
    anchors = [one for one in images if one.post == primary][: most_pictures // 2]
    rest = [one for one in images if one not in anchors]
    most = most_pictures - len(anchors)
    slices: list[list[SampleImage]] = [[]]
    for _, of_post in groupby(rest, attrgetter("post")):
        together = list(of_post)
        if slices[-1] and len(slices[-1]) + len(together) > most:
            slices.append([])
        slices[-1] += together
        while len(slices[-1]) > most:
            slices[-1:] = [slices[-1][:most], slices[-1][most:]]
    return [part_of(sample, anchors + some) for some in slices]


def part_of(sample: Sample, images: Sequence[SampleImage]) -> RequestPart:
    context, own = sample["context"], places_of(sample)
    # The post with the task and those with images always; others while there is room.
    wanted = dict.fromkeys([own[0], *(one.post for one in images), *own])
    some = list(wanted)[: MOST_IMAGES + 1]
    for place in tuple(some):
        while (place := context[place]["parent"]) >= 0 and len(some) < MOST_POSTS:
            if place not in some:
                some.append(place)
    return RequestPart(tuple(sorted(some)), frozenset(own) & set(some), tuple(images))


@dataclass(eq=False)
class Task:
    prompt: str
    fillings: Fillings = ()
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    posts: list[int] = field(default_factory=list)
    screenshot: str | None = None
    contradicted: bool = False  # it is without an image that the model gave it

    @property
    def shown_by(self) -> list[str]:
        return [*self.outputs, *filter(None, [self.screenshot])]

    @property
    def images(self) -> list[str]:
        return [*self.shown_by, *self.inputs]

    def join(self, other: Task) -> None:
        """Takes in what another answer says about the same task."""
        for mine, others in ((self.inputs, other.inputs), (self.outputs, other.outputs)):
            mine.extend(one for one in others if one not in mine)
        self.posts.extend(one for one in other.posts if one not in self.posts)
        self.screenshot = self.screenshot or other.screenshot
        self.contradicted = self.contradicted or other.contradicted


def joined(tasks: Iterable[tuple[Key, Task]]) -> list[Task]:
    first: dict[Key, Task] = {}
    for key, task in tasks:
        if first.setdefault(key, task) is not task:
            first[key].join(task)
    return list(first.values())


def tries(tasks: Sequence[Task]) -> list[Task]:
    """Joins what belongs to the same try of a prompt."""
    apart: list[Task] = []
    for task in tasks:
        first, *others = [*(one for one in apart if _share(one, task)), task]
        for other in others:
            first.join(other)
        apart = [*(one for one in apart if one not in others), *([task] if first is task else [])]
    first_shown = next((task for task in apart if task.images), None)
    placed = ((task if task.images else first_shown, task) for task in apart)
    return joined((same if same and same.inputs else None, task) for same, task in placed)


def told_and_seen(told: Sequence[Task], seen: Sequence[Task]) -> list[Task]:
    """Joins what is told in words with the screenshots that show it."""
    apart = []
    for task in told:
        same = next((one for one in seen if _share(one, task)), None)
        if same:
            same.join(task)
        else:
            apart.append(task)
    lacking = next((task for task in apart if not (task.inputs and task.outputs)), None)
    if lacking and seen and len(apart) == len(told):
        seen[0].join(lacking)
        apart.remove(lacking)
    return [*apart, *seen]


def _share(one: Task, other: Task) -> bool:
    return not set(one.images).isdisjoint(other.images)


@dataclass
class Assigned:
    """The tasks of one sample."""

    prompt: str
    order: Sequence[str]
    may_abstain: bool = False
    findings: list[Finding] = field(default_factory=list)
    may_show_minor: set[str] = field(default_factory=set)
    assumed: bool = False  # nobody has said or seen what its images are
    _tasks: list[Task] = field(default_factory=list)
    _screenshots: set[str] = field(default_factory=set)

    def add(self, answer: RolesAnswer, part: RequestPart) -> None:
        """Takes over the answer about one part of the sample."""
        images = [one.sha256 for one in part.images]
        self.assumed = self.assumed or (answer.assumed and self.may_abstain)
        for sample in answer.samples:
            named = (one for one in (sample.conversation, sample.collage) if one is not None)
            shots = self._known(named, images)
            self._screenshots.update(shots)
            blanks = [(one.placeholder, one.value) for one in sample.prompt_fill_blank]
            done = completed(self.prompt, [one for one in blanks if one[1].strip()])
            for placeholder in (*done.unknown, *done.surplus):
                self._find(Notice.UNKNOWN_BLANK, placeholder)
            task = Task(
                done.prompt,
                done.filled if done.prompt != self.prompt else (),
                self._known(sample.inputs, images),
                self._known(sample.outputs, images),
                self._posts(sample.posts, part),
                next(iter(shots), None),
            )
            self._tasks.append(task)
            if sample.may_show_minor or (sample.may_show_minor is None and not self.may_abstain):
                # Where no image is named it may be any of them.
                self.may_show_minor.update([*shots, *task.images] or images)

    def finish(self) -> list[Task]:
        """The tasks: first those that are no completion, each kind by its first image."""
        tasks = sorted(self._tasks, key=self._sources)
        made = {one for task in tasks for one in task.outputs}
        for task in tasks:
            self._drop(task, task.inputs, self._screenshots)
            self._drop(task, task.outputs, self._screenshots)
            # What is shown as a result must never be given to a system as an input.
            self._drop(task, task.inputs, made, Notice.TWO_ROLES)
        completions, rest = self._completions(tasks)
        told = tries([task for task in rest if not task.screenshot])
        seen = joined((task.screenshot, task) for task in rest if task.screenshot)
        # Beside its completions a template is no task of its own; a conversation is.
        plain = seen if completions else told_and_seen(told, seen)
        taken = {one for task in completions for one in task.images}
        for task in plain:
            self._leave(task, taken)
            self._drop(task, task.inputs, taken, Notice.IMAGE_USED_TWICE)
            taken.update(task.images)
        shown = [task for task in plain if task.images]
        tasks = [*self._in_order(shown), *self._in_order(completions)]
        used = {one for task in tasks for one in task.images}
        of_template = {one for task in told for one in task.images}
        for digest in (one for one in self.order if one not in used):
            # Where a template stays as it is, all that was said to be its own is used.
            self._find(Notice.NOT_COMPLETED if digest in of_template else Notice.NEITHER, digest)
        return tasks

    @cached_property
    def _rank(self) -> dict[str, int]:
        return {digest: number for number, digest in enumerate(self.order)}

    def _in_order(self, tasks: Iterable[Task]) -> list[Task]:
        made = sorted(tasks, key=self._sources)
        for task in made:
            task.inputs.sort(key=self._rank.__getitem__)
            task.outputs.sort(key=self._rank.__getitem__)
        return made

    def _sources(self, task: Task) -> tuple[Any, ...]:
        every, outputs, inputs = (
            sorted(map(self._rank.__getitem__, some))
            for some in (task.images, task.outputs, task.inputs)
        )
        return every[:1] or [len(self.order)], outputs, inputs, task.screenshot or "", task.prompt

    def _known(self, numbers: Iterable[int], images: Sequence[str]) -> list[str]:
        some = dict.fromkeys(numbers)
        for number in some:
            if not 1 <= number <= len(images):
                self._find(Notice.UNKNOWN_NUMBER, f"image {number}")
        return [images[number - 1] for number in some if 1 <= number <= len(images)]

    def _posts(self, numbers: Iterable[int], part: RequestPart) -> list[int]:
        own = []
        for number in dict.fromkeys(numbers):
            if number >= len(part.posts):
                self._find(Notice.UNKNOWN_NUMBER, f"post {number}")
            elif part.posts[number] not in part.own:
                self._find(Notice.NOT_ITS_POST, f"post {number}")
            else:
                own.append(part.posts[number])
        return own

    def _completions(self, tasks: Sequence[Task]) -> tuple[list[Task], list[Task]]:
        filled = joined((task.prompt, task) for task in tasks if task.fillings)
        rest = [task for task in tasks if not task.fillings]
        taken: set[str] = set()
        for task in filled:
            self._leave(task, taken)
            taken.update(task.shown_by)
            if not task.shown_by:
                self._find(Notice.COMPLETION_WITHOUT_IMAGE, task.prompt[:80])
                rest.append(Task(self.prompt, inputs=task.inputs, posts=task.posts))
        for task in rest:
            task.screenshot = None if task.screenshot in taken else task.screenshot
        return [task for task in filled if task.shown_by], rest

    def _leave(self, task: Task, taken: Collection[str]) -> None:
        self._drop(task, task.outputs, taken, Notice.IMAGE_USED_TWICE)
        if task.screenshot is not None and task.screenshot in taken:
            self._find(Notice.IMAGE_USED_TWICE, task.screenshot)
            task.screenshot, task.contradicted = None, True

    def _drop(
        self, task: Task, images: list[str], which: Collection[str], notice: Notice | None = None
    ) -> None:
        for digest in [one for one in images if one in which]:
            images.remove(digest)
            if notice:
                task.contradicted = True
                self._find(notice, digest)

    def _find(self, notice: Notice, detail: str) -> None:
        if (notice, detail) not in self.findings:
            self.findings.append((notice, detail))


def rows_of(
    sample: Sample,
    tasks: Sequence[Task],
    made_by: Mapping[str, Any],
    may_show_minor: Collection[str] = (),
) -> Iterator[dict[str, Any]]:
    context, places = sample["context"], places_of(sample)
    own = []
    for task in tasks:
        images = set(task.images)
        shown = [
            n for n in places if any(one["sha256"] in images for one in context[n]["pictures"])
        ]
        own.append(list(dict.fromkeys([places[0], *task.posts, *shown])))
    feedback = _shared_out(sample, own)
    named = {place for posts in own for place in posts}
    own[0].extend(place for place in places if place not in named)
    written = SpanIndex(texts_of(context))
    for nth, task in enumerate(tasks):
        modified = bool(task.fillings) and not written.holds(task.prompt)
        name, said = sample["id"], dict(made_by)
        if nth or task.fillings:
            # Completions may share inputs; of other tasks each has its own.
            naming = task.shown_by if task.fillings else task.images
            first = next(one.sha256 for one in images_of(sample) if one.sha256 in naming)
            name = sample_id(sample["id"], first)
        if task.fillings:
            blanks = [{"placeholder": blank, "value": value} for blank, value in task.fillings]
            said |= {"template": sample["prompt"], "blanks": blanks}
        waits = any(one in may_show_minor for one in task.images)
        yield {
            **sample,
            "id": name,
            "post_urls": [context[place]["url"] for place in own[nth]],
            "prompt": task.prompt,
            "quality": quality_with(task.prompt, sample["quality"]),
            "prompt_modified": sample["prompt_modified"] or modified,
            "prompt_fill_blank": bool(task.fillings),
            "community_feedback": feedback[nth],
            "input_images": task.inputs,
            "output_images": task.outputs,
            "screenshot": task.screenshot,
            "review": [*sample["review"], *([Review.MAY_SHOW_MINOR.value] if waits else [])],
            "doubts": [Doubt.ROLES_CONTRADICT.value] if task.contradicted else [],
            "sample_digest": sample_digest(task.prompt, task.inputs),
            "provenance": provenance_with(sample, "roles", said),
        }


def without_task(sample: Sample, made_by: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a sample whose images show no coherent task: its words stay for analysis."""
    return {
        **sample,
        "quality": at_most_analysis(sample["quality"]),
        "output_images": [],
        "provenance": provenance_with(sample, "roles", made_by),
    }


def quality_with(prompt: str, quality: str) -> str:
    """The quality of a sample with this prompt: what is no whole task is for analysis only."""
    whole = not placeholders(prompt) and not MARK.search(prompt)
    return quality if whole else at_most_analysis(quality)


def at_most_analysis(quality: str) -> str:
    return "Analysis" if quality == "Benchmark" else quality


def doubts_of(sample: Sample, lacks_input: bool | None = None) -> list[str]:
    """What is doubtful of a sample as it stands; what was doubtful of its roles stays.

    Its words say whether it lacks an input where nobody else has.
    """
    found = list[Doubt]()
    if sample["quality"] != "Trash":
        if sample["screenshot"] and not sample["is_screenshot"]:
            found = [
                Doubt.SCREENSHOT_WHOLE,
                *([Doubt.ASSUMED_BOXES] if HeldBoxes.of(sample) else []),
            ]
        elif not sample["input_images"]:
            lacks = speaks_of_input(sample) if lacks_input is None else lacks_input
            found = [Doubt.LACKS_INPUT] if lacks else []
        found += [doubt for doubt in OF_ROLES if doubt in (sample["doubts"] or ())]
    return [doubt.value for doubt in found]


def speaks_of_input(sample: Sample) -> bool:
    """Whether a prompt speaks of an image that came with it, or its own posts ask for one."""
    prompt = sample["prompt"]
    if needs_image(prompt):
        return True
    own, posts = set(sample["post_urls"]), sample.get("context") or ()
    texts = [post["text"] or "" for post in posts if post["url"] in own]
    return any(asks_for_image(_beside(prompt, text)) for text in texts)


def _beside(prompt: str, text: str) -> str:
    """What a text says beside a prompt; of one that is not there word by word, before it."""
    if prompt in text:
        return text.replace(prompt, "\n")
    start = span_start(prompt, text)
    return text[:start] if start >= 0 else text


def _shared_out(sample: Sample, own: Sequence[Sequence[int]]) -> list[Feedback]:
    context = sample["context"]
    place = {post["url"]: number for number, post in enumerate(context)}
    # All tasks have the primary post; what stands below it alone goes to the first.
    owner = {number: nth for nth, posts in reversed([*enumerate(own)]) for number in posts}
    given: list[Feedback] = [[] for _ in own]
    for said in sample["community_feedback"]:
        number = place[said["post_url"]]
        while number >= 0 and number not in owner:
            number = context[number]["parent"]
        given[owner.get(number, 0)].append(said)
    return given
