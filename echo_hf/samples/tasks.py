"""The parts of a sample that requests show, the tasks that answers tell apart, and their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from echo_hf._infra.text import MARK, shorten_texts
from echo_hf.engines.reference_images import asks_for_image, needs_image
from echo_hf.reasons import NoticeReason
from echo_hf.samples.blanks import MAX_PLACEHOLDER_CHARACTERS, complete_template, find_placeholders
from echo_hf.samples.extract import TRASH
from echo_hf.samples.held_boxes import StoredBoxes
from echo_hf.samples.sample import (
    Doubt,
    Finding,
    Review,
    Sample,
    SampleNotice,
    add_provenance,
    own_post_positions,
    sample_digest,
    sample_id,
    texts_of,
)
from echo_hf.samples.spans import SpanIndex, find_span_start

MAX_IMAGES = 32  # of one request
MAX_POSTS = 64  # of one request
MAX_BLANKS = 32
MAX_VALUE_CHARACTERS = 1000

ROLE_DOUBTS = (Doubt.ROLES_CONTRADICT, Doubt.ROLES_ASSUMED, Doubt.COLLAGE)

ImageNumber = Annotated[int, Field(ge=0, le=999_999)]
ImageNumbers = Annotated[list[ImageNumber], Field(max_length=MAX_IMAGES)]
MAX_TEXT = 4000
MAX_TEXTS = 16_000  # of all posts and descriptions of a part together
Key = TypeVar("Key")
Fillings = tuple[tuple[str, str], ...]
FeedbackRows = list[Mapping[str, Any]]


class FilledBlank(BaseModel):
    """A placeholder of a template, copied from it letter for letter, and what stands for it."""

    placeholder: Annotated[str, Field(min_length=1, max_length=MAX_PLACEHOLDER_CHARACTERS)]
    value: Annotated[str, Field(min_length=1, max_length=MAX_VALUE_CHARACTERS)]


class RolesSample(BaseModel):
    """One task: its pictures and posts, what fills its blanks, the screenshot it is read from.

    `may_show_minor` is null where nothing was said of it.
    """

    inputs: ImageNumbers
    outputs: ImageNumbers
    posts: Annotated[list[ImageNumber], Field(max_length=MAX_POSTS)]
    prompt_fill_blank: Annotated[list[FilledBlank], Field(max_length=MAX_BLANKS)] = []
    conversation: ImageNumber | None = None
    collage: ImageNumber | None = None
    may_show_minor: bool | None = None


class RolesAnswer(BaseModel):
    """What the pictures of a sample are; no sample where no coherent task can be made out."""

    samples: Annotated[list[RolesSample], Field(max_length=MAX_IMAGES)]
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
    """The posts and images that one request shows.

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
        raw_texts = [context[place]["text"] for place in self.posts]
        raw_texts += [image.alt_text for image in self.images]
        texts = iter(shorten_texts(raw_texts, MAX_TEXT, MAX_TEXTS))
        authors: dict[str, str] = {}
        places = {place: number for number, place in enumerate(self.posts)}
        numbers = {image.sha256: number for number, image in enumerate(self.images, 1)}
        posts: list[dict[str, Any]] = [
            {
                "number": places[place],
                "parent": places.get(context[place]["parent"], -1),
                "author": context[place]["author"]
                and authors.setdefault(context[place]["author"], f"author {len(authors) + 1}"),
                "text": next(texts),
                "pictures": [n for n, image in enumerate(self.images, 1) if image.post == place],
                "own": place in self.own,
            }
            for place in self.posts
        ]
        images = []
        for number, sample_image in enumerate(self.images, 1):
            fields = {"number": number, "post": places[sample_image.post], "alt_text": next(texts)}
            original_number = numbers.get(sample_image.copy_of or "")
            images.append({**fields, "same_as": original_number} if original_number else fields)
        return {
            "prompt": sample["prompt"],
            "placeholders": list(placeholders),
            "posts": posts,
            "pictures": images,
        }


def _iterate_own_images(sample: Sample) -> Iterator[tuple[int, Mapping[str, Any]]]:
    own_urls = set(sample["post_urls"])
    for place, post in enumerate(sample["context"]):
        for image in post["pictures"] if post["url"] in own_urls else ():
            yield place, image


def own_images(sample: Sample) -> list[SampleImage]:
    """Return the images of a sample's own posts, each once, in the order of the posts."""
    candidates, images = set(sample["output_images"]), dict[str, SampleImage]()
    for place, post_image in _iterate_own_images(sample):
        if post_image["sha256"] in candidates:
            sha256, alt_text = post_image["sha256"], post_image["alt_text"]
            image = SampleImage(sha256, place, alt_text, post_image["same_picture_of"])
            images.setdefault(sha256, image)
    return list(images.values())


def find_missing_images(sample: Sample) -> Iterator[str]:
    """Yield the images of a sample's own posts that are unavailable, and may be inputs."""
    for place, image in _iterate_own_images(sample):
        if image["sha256"] is None:
            yield image["url"] or image["alt_text"] or sample["context"][place]["url"]


def split_images(sample: Sample, max_images: int) -> list[RequestPart]:
    """Split images into requests; very many go in slices, each with the first post's images."""
    images = own_images(sample)
    if len(images) <= max_images:
        return [make_part(sample, images)] if images else []
    primary = own_post_positions(sample)[0]
    anchors = [image for image in images if image.post == primary][: max_images // 2]
    other_images = [image for image in images if image not in anchors]
    max_others = max_images - len(anchors)
    slices: list[list[SampleImage]] = [[]]
    for _, group in groupby(other_images, attrgetter("post")):
        post_images = list(group)
        if slices[-1] and len(slices[-1]) + len(post_images) > max_others:
            slices.append([])
        slices[-1] += post_images
        while len(slices[-1]) > max_others:
            slices[-1:] = [slices[-1][:max_others], slices[-1][max_others:]]
    return [make_part(sample, anchors + piece) for piece in slices]


def make_part(sample: Sample, images: Sequence[SampleImage]) -> RequestPart:
    context, own_places = sample["context"], own_post_positions(sample)
    # Always the first post and those with images; then others, as many as fit.
    ordered_places = dict.fromkeys([own_places[0], *(image.post for image in images), *own_places])
    places = list(ordered_places)[: MAX_IMAGES + 1]
    for place in tuple(places):
        while (place := context[place]["parent"]) >= 0 and len(places) < MAX_POSTS:
            if place not in places:
                places.append(place)
    return RequestPart(tuple(sorted(places)), frozenset(own_places) & set(places), tuple(images))


@dataclass(eq=False)
class TaskDraft:
    prompt: str
    fillings: Fillings = ()
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    posts: list[int] = field(default_factory=list)
    screenshot: str | None = None
    contradicted: bool = False  # an image that the model assigned to it was removed

    @property
    def shown_by(self) -> list[str]:
        return [*self.outputs, *filter(None, [self.screenshot])]

    @property
    def images(self) -> list[str]:
        return [*self.shown_by, *self.inputs]

    def join(self, other: TaskDraft) -> None:
        """Add what another answer says about the same task."""
        for own_digests, digests in ((self.inputs, other.inputs), (self.outputs, other.outputs)):
            own_digests.extend(digest for digest in digests if digest not in own_digests)
        self.posts.extend(place for place in other.posts if place not in self.posts)
        self.screenshot = self.screenshot or other.screenshot
        self.contradicted = self.contradicted or other.contradicted


def join_tasks(tasks: Iterable[tuple[Key, TaskDraft]]) -> list[TaskDraft]:
    first_by_key: dict[Key, TaskDraft] = {}
    for key, task in tasks:
        if first_by_key.setdefault(key, task) is not task:
            first_by_key[key].join(task)
    return list(first_by_key.values())


def join_tries(tasks: Sequence[TaskDraft]) -> list[TaskDraft]:
    """Join the tasks that belong to the same try of a prompt."""
    kept: list[TaskDraft] = []
    for task in tasks:
        # A task may join tasks that had no image in common before it.
        first, *others = [*(peer for peer in kept if _share_image(peer, task)), task]
        for other in others:
            first.join(other)
        kept = [peer for peer in kept if peer not in others]
        kept += [task] if first is task else []
    first_shown = next((task for task in kept if task.images), None)
    keyed: list[tuple[TaskDraft | None, TaskDraft]] = []
    for task in kept:
        # Tasks without inputs are one try; so are the first task with images and those without.
        shown_task = task if task.images else first_shown
        keyed.append((shown_task if shown_task and shown_task.inputs else None, task))
    return join_tasks(keyed)


def join_with_screenshots(
    written: Sequence[TaskDraft], shots: Sequence[TaskDraft]
) -> list[TaskDraft]:
    """Join the tasks that are told in words with the screenshots that show them."""
    kept = []
    for task in written:
        match = next((peer for peer in shots if _share_image(peer, task)), None)
        if match:
            match.join(task)
        else:
            kept.append(task)
    incomplete = next((task for task in kept if not (task.inputs and task.outputs)), None)
    if incomplete and shots and len(kept) == len(written):
        shots[0].join(incomplete)
        kept.remove(incomplete)
    return [*kept, *shots]


def _share_image(task: TaskDraft, other: TaskDraft) -> bool:
    return not set(task.images).isdisjoint(other.images)


@dataclass
class AssignedTasks:
    """The tasks of one sample, and the roles of its images in them."""

    prompt: str
    order: Sequence[str]
    may_abstain: bool = False
    findings: list[Finding] = field(default_factory=list)
    may_show_minor: set[str] = field(default_factory=set)
    assumed: bool = False  # an engine without a model guessed its roles
    _tasks: list[TaskDraft] = field(default_factory=list)
    _screenshots: set[str] = field(default_factory=set)

    def add(self, answer: RolesAnswer, part: RequestPart) -> None:
        """Add the answer about one part of the sample."""
        images = [image.sha256 for image in part.images]
        self.assumed = self.assumed or (answer.assumed and self.may_abstain)
        for sample in answer.samples:
            numbers = [n for n in (sample.conversation, sample.collage) if n is not None]
            screenshots = self._check_numbers(numbers, images)
            self._screenshots.update(screenshots)
            blanks = [blank for blank in sample.prompt_fill_blank if blank.value.strip()]
            fillings = [(blank.placeholder, blank.value) for blank in blanks]
            filled = complete_template(self.prompt, fillings)
            for placeholder in (*filled.unknown, *filled.surplus):
                self._note(SampleNotice.UNKNOWN_BLANK, placeholder)
            task = TaskDraft(
                filled.prompt,
                filled.filled if filled.prompt != self.prompt else (),
                self._check_numbers(sample.inputs, images),
                self._check_numbers(sample.outputs, images),
                self._check_posts(sample.posts, part),
                next(iter(screenshots), None),
            )
            self._tasks.append(task)
            if sample.may_show_minor or (sample.may_show_minor is None and not self.may_abstain):
                # If the answer names no image, it may be any of them.
                self.may_show_minor.update([*screenshots, *task.images] or images)

    def finish(self) -> list[TaskDraft]:
        """Return the tasks: completions last, each kind in the order of its first image."""
        tasks = sorted(self._tasks, key=self._sort_key)
        output_digests = {digest for task in tasks for digest in task.outputs}
        for task in tasks:
            self._drop(task, task.inputs, self._screenshots)
            self._drop(task, task.outputs, self._screenshots)
            # A system must never get as an input what another post shows as the result.
            self._drop(task, task.inputs, output_digests, SampleNotice.TWO_ROLES)
        completions, others = self._split_completions(tasks)
        written = join_tries([task for task in others if not task.screenshot])
        shots = join_tasks((task.screenshot, task) for task in others if task.screenshot)
        # If a template has completions, only its conversations are tasks besides them.
        plain_tasks = shots if completions else join_with_screenshots(written, shots)
        taken_digests = {digest for task in completions for digest in task.images}
        for task in plain_tasks:
            self._remove_taken(task, taken_digests)
            self._drop(task, task.inputs, taken_digests, SampleNotice.IMAGE_USED_TWICE)
            taken_digests.update(task.images)
        with_images = [task for task in plain_tasks if task.images]
        tasks = [*self._sort_tasks(with_images), *self._sort_tasks(completions)]
        used_digests = {digest for task in tasks for digest in task.images}
        template_digests = {digest for task in written for digest in task.images}
        for digest in self.order:
            # Images of a template that stays as it is have been used above.
            if digest not in used_digests:
                is_of_template = digest in template_digests
                self._note(
                    SampleNotice.NOT_COMPLETED if is_of_template else SampleNotice.NEITHER, digest
                )
        return tasks

    @cached_property
    def _rank(self) -> dict[str, int]:
        return {digest: number for number, digest in enumerate(self.order)}

    def _sort_tasks(self, tasks: Iterable[TaskDraft]) -> list[TaskDraft]:
        ordered = sorted(tasks, key=self._sort_key)
        for task in ordered:
            task.inputs.sort(key=self._rank.__getitem__)
            task.outputs.sort(key=self._rank.__getitem__)
        return ordered

    def _sort_key(self, task: TaskDraft) -> tuple[Any, ...]:
        ranks, outputs, inputs = (
            sorted(map(self._rank.__getitem__, digests))
            for digests in (task.images, task.outputs, task.inputs)
        )
        return ranks[:1] or [len(self.order)], outputs, inputs, task.screenshot or "", task.prompt

    def _check_numbers(self, numbers: Iterable[int], images: Sequence[str]) -> list[str]:
        distinct = dict.fromkeys(numbers)
        for number in distinct:
            if not 1 <= number <= len(images):
                self._note(SampleNotice.UNKNOWN_NUMBER, f"image {number}")
        return [images[number - 1] for number in distinct if 1 <= number <= len(images)]

    def _check_posts(self, numbers: Iterable[int], part: RequestPart) -> list[int]:
        own_places = []
        for number in dict.fromkeys(numbers):
            if number >= len(part.posts):
                self._note(SampleNotice.UNKNOWN_NUMBER, f"post {number}")
            elif part.posts[number] not in part.own:
                self._note(SampleNotice.NOT_ITS_POST, f"post {number}")
            else:
                own_places.append(part.posts[number])
        return own_places

    def _split_completions(
        self, tasks: Sequence[TaskDraft]
    ) -> tuple[list[TaskDraft], list[TaskDraft]]:
        filled = join_tasks((task.prompt, task) for task in tasks if task.fillings)
        others = [task for task in tasks if not task.fillings]
        taken_digests: set[str] = set()
        for task in filled:
            self._remove_taken(task, taken_digests)
            taken_digests.update(task.shown_by)
            if not task.shown_by:
                self._note(SampleNotice.COMPLETION_WITHOUT_IMAGE, task.prompt[:80])
                others.append(TaskDraft(self.prompt, inputs=task.inputs, posts=task.posts))
        for task in others:
            task.screenshot = None if task.screenshot in taken_digests else task.screenshot
        return [task for task in filled if task.shown_by], others

    def _remove_taken(self, task: TaskDraft, taken_digests: Collection[str]) -> None:
        self._drop(task, task.outputs, taken_digests, SampleNotice.IMAGE_USED_TWICE)
        if task.screenshot is not None and task.screenshot in taken_digests:
            self._note(SampleNotice.IMAGE_USED_TWICE, task.screenshot)
            task.screenshot, task.contradicted = None, True

    def _drop(
        self,
        task: TaskDraft,
        images: list[str],
        dropped: Collection[str],
        notice: NoticeReason | None = None,
    ) -> None:
        for digest in [image for image in images if image in dropped]:
            images.remove(digest)
            if notice:
                task.contradicted = True
                self._note(notice, digest)

    def _note(self, notice: NoticeReason, detail: str) -> None:
        if (notice, detail) not in self.findings:
            self.findings.append((notice, detail))


def build_rows(
    sample: Sample,
    tasks: Sequence[TaskDraft],
    made_by: Mapping[str, Any],
    may_show_minor: Collection[str] = (),
) -> Iterator[dict[str, Any]]:
    context, places = sample["context"], own_post_positions(sample)
    own = []
    for task in tasks:
        images = set(task.images)
        image_places = [
            n for n in places if any(image["sha256"] in images for image in context[n]["pictures"])
        ]
        own.append(list(dict.fromkeys([places[0], *task.posts, *image_places])))
    feedback = _split_feedback(sample, own)
    used_places = {place for posts in own for place in posts}
    own[0].extend(place for place in places if place not in used_places)
    span_index = SpanIndex(texts_of(context))
    for task_number, task in enumerate(tasks):
        modified = bool(task.fillings) and not span_index.contains(task.prompt)
        row_id, record = sample["id"], dict(made_by)
        if task_number or task.fillings:
            # Completions may share inputs, so only their outputs identify them.
            naming_images = task.shown_by if task.fillings else task.images
            digests = (image.sha256 for image in own_images(sample))
            first = next(digest for digest in digests if digest in naming_images)
            row_id = sample_id(sample["id"], first)
        if task.fillings:
            blanks = [{"placeholder": blank, "value": value} for blank, value in task.fillings]
            record |= {"template": sample["prompt"], "blanks": blanks}
        needs_review = any(digest in may_show_minor for digest in task.images)
        yield {
            **sample,
            "id": row_id,
            "post_urls": [context[place]["url"] for place in own[task_number]],
            "prompt": task.prompt,
            "quality": decide_quality(task.prompt, sample["quality"]),
            "prompt_modified": sample["prompt_modified"] or modified,
            "prompt_fill_blank": bool(task.fillings),
            "community_feedback": feedback[task_number],
            "input_images": task.inputs,
            "output_images": task.outputs,
            "screenshot": task.screenshot,
            "review": [*sample["review"], *([Review.MAY_SHOW_MINOR.value] if needs_review else [])],
            "doubts": [Doubt.ROLES_CONTRADICT.value] if task.contradicted else [],
            "sample_digest": sample_digest(task.prompt, task.inputs),
            "provenance": add_provenance(sample, "roles", record),
        }


def build_analysis_row(sample: Sample, made_by: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a sample without a coherent task, which stays for analysis."""
    return {
        **sample,
        "quality": limit_quality(sample["quality"]),
        "output_images": [],
        "provenance": add_provenance(sample, "roles", made_by),
    }


def decide_quality(prompt: str, quality: str) -> str:
    """Return the quality of a sample with this prompt; an incomplete one is for analysis only."""
    is_whole = not find_placeholders(prompt) and not MARK.search(prompt)
    return quality if is_whole else limit_quality(quality)


def limit_quality(quality: str) -> str:
    return "Analysis" if quality == "Benchmark" else quality


def find_doubts(sample: Sample, lacks_input: bool | None = None) -> list[str]:
    """Return the doubts about a sample as it stands; doubts about its roles stay.

    Its words say whether it lacks an input where nobody else has.
    """
    doubts = list[Doubt]()
    if sample["quality"] != TRASH:
        if sample["screenshot"] and not sample["is_screenshot"]:
            doubts = [Doubt.SCREENSHOT_WHOLE]
            doubts += [Doubt.ASSUMED_BOXES] if StoredBoxes.from_sample(sample) else []
        elif not sample["input_images"]:
            lacks = mentions_input(sample) if lacks_input is None else lacks_input
            doubts = [Doubt.LACKS_INPUT] if lacks else []
        doubts += [doubt for doubt in ROLE_DOUBTS if doubt in (sample["doubts"] or ())]
    return [doubt.value for doubt in doubts]


def mentions_input(sample: Sample) -> bool:
    """Return whether a prompt mentions an image that came with it, or its posts ask for one."""
    prompt = sample["prompt"]
    if needs_image(prompt):
        return True
    own_urls, posts = set(sample["post_urls"]), sample.get("context") or ()
    texts = [post["text"] or "" for post in posts if post["url"] in own_urls]
    return any(asks_for_image(_remove_prompt(prompt, text)) for text in texts)


def _remove_prompt(prompt: str, text: str) -> str:
    """Return a text without a prompt; where its words differ, only what is before the prompt."""
    if prompt in text:
        return text.replace(prompt, "\n")
    start = find_span_start(prompt, text)
    return text[:start] if start >= 0 else text


def _split_feedback(sample: Sample, own: Sequence[Sequence[int]]) -> list[FeedbackRows]:
    context = sample["context"]
    number_of_url = {post["url"]: number for number, post in enumerate(context)}
    # All tasks have the primary post: feedback below no other post goes to the first task.
    owner = {
        number: task_number
        for task_number, posts in reversed([*enumerate(own)])
        for number in posts
    }
    feedback_of_task: list[FeedbackRows] = [[] for _ in own]
    for feedback in sample["community_feedback"]:
        number = number_of_url[feedback["post_url"]]
        while number >= 0 and number not in owner:
            number = context[number]["parent"]
        feedback_of_task[owner.get(number, 0)].append(feedback)
    return feedback_of_task
