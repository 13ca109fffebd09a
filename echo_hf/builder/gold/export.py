"""Make gold for `check-engine` from what reviewers decided: whole threads only."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from echo_hf._infra.atomic import replaced_whole
from echo_hf.builder.build import RUNS, opened
from echo_hf.builder.gold.consistency import check_agreement
from echo_hf.builder.gold.folder import Digests, GoldPosts, read_gold, read_posts
from echo_hf.builder.review import samples_of
from echo_hf.collect.urls import canonical_url
from echo_hf.config.loading import Config
from echo_hf.curate.decisions import FILE, Decision, Decisions, cleaned_in, read_decisions
from echo_hf.curate.edits import reviewed_rows
from echo_hf.errors import GoldError
from echo_hf.reasons import NotGold
from echo_hf.samples.spans import SpanIndex, squeezed

Row = Mapping[str, Any]
Line = dict[str, Any]


@dataclass(frozen=True)
class ReviewedThread:
    """A thread and its samples."""

    root: str
    samples: Sequence[Row]
    kept: Collection[str]
    posts: Sequence[Row]

    @cached_property
    def written(self) -> SpanIndex:
        """What people wrote in it."""
        texts = [post["text"] or "" for post in self.posts]
        return SpanIndex(
            [*texts, *(one["alt_text"] or "" for post in self.posts for one in post["pictures"])]
        )

    @property
    def listed(self) -> list[Row]:
        """The samples that gold lists: those kept, and those removed whose words stand there."""
        own = {squeezed(row["prompt"]) for row in self.samples if row["id"] in self.kept}
        return [
            row
            for row in self.samples
            if row["id"] in self.kept
            or (self.written.holds(row["prompt"]) and squeezed(row["prompt"]) not in own)
        ]

    @property
    def has_screenshot(self) -> bool:
        """Whether a sample has one; whether it shows a conversation or a collage nobody says."""
        return any(row["screenshot"] for row in self.samples)


def why_not(thread: ReviewedThread) -> NotGold | None:
    """Why a thread cannot be gold."""
    kept = [row for row in thread.samples if row["id"] in thread.kept]
    if any(row["prompt_fill_blank"] for row in thread.samples):
        return NotGold.COMPLETION
    if not all(thread.written.holds(row["prompt"]) for row in kept):
        return NotGold.NOT_COPIED
    prompts = [squeezed(row["prompt"]) for row in thread.listed]
    return NotGold.SAME_PROMPT if len(set(prompts)) < len(prompts) else None


def extract_line(thread: ReviewedThread) -> Line:
    """The line of `extract.jsonl`."""
    said: set[str] = set()
    return {
        "root_url": thread.root,
        "samples": [_sample(thread, row, said) for row in thread.listed],
    }


def roles_lines(thread: ReviewedThread, pictures: Mapping[str, Digests]) -> Iterator[Line]:
    """The lines of `roles.jsonl`."""
    kept = [row for row in thread.samples if row["id"] in thread.kept]
    lost = {one for row in thread.samples if row["id"] not in thread.kept for one in _shown(row)}
    lines: dict[str, list[Line]] = {row["id"]: [] for row in kept}
    for place, post in enumerate(thread.posts):
        for index, digest in enumerate(pictures.get(post["url"], ())):
            owner = next((row for row in kept if digest in _shown(row)), None)
            if digest is None or (owner is None and digest in lost) or not kept:
                continue
            role = _shown(owner)[digest] if owner else "neither"
            row = owner or _near(thread, place, kept)
            at = {"post_url": post["url"], "index": index, "role": role}
            lines[row["id"]].append(at)
    for row in kept:
        yield {"root_url": thread.root, "prompt": row["prompt"], "pictures": lines[row["id"]]}


def _sample(thread: ReviewedThread, row: Row, said: set[str]) -> Line:
    urls = dict.fromkeys(one["post_url"] for one in row["community_feedback"] or ())
    feedback = [url for url in urls if url not in said]
    said.update(feedback)
    return {
        "prompt": row["prompt"],
        "quality": row["quality"],
        "post_urls": list(row["post_urls"]),
        "feedback_optional": feedback,
        "optional": row["id"] not in thread.kept,
    }


def _shown(row: Row) -> dict[str, str]:
    roles = (("input", row["input_images"]), ("output", row["output_images"]))
    return {digest: role for role, digests in roles for digest in digests or ()}


def _near(thread: ReviewedThread, place: int, kept: Sequence[Row]) -> Row:
    """The sample that a post belongs to, or that it stands below; else the first."""
    while place >= 0:
        url = thread.posts[place]["url"]
        found = next((row for row in kept if url in row["post_urls"]), None)
        if found is not None:
            return found
        place = thread.posts[place]["parent"]
    return kept[0]


@dataclass(frozen=True)
class ExportedGold:
    """What was made of reviews."""

    folder: Path
    threads: int
    samples: int
    pictures: int
    left_out: Mapping[NotGold, int]

    def told(self) -> Iterator[str]:
        """What to say of it, a line each."""
        yield (
            f"{self.samples} samples of {self.threads} threads, and the roles of {self.pictures} "
            f"pictures, in {self.folder}"
        )
        for reason, count in self.left_out.items():
            yield f"{count} reviewed samples left out, {reason}: {reason.meaning}"
        yield f"next: echo-hf check-engine CONFIG --gold {self.folder}"


def export_gold(
    config: Config | Path | str, folder: Path, *, runs: Path | str = RUNS
) -> ExportedGold:
    """Writes what reviewers decided as gold for `check-engine`."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise GoldError(f"{str(folder)!r} is not empty: name a new folder")
    with opened(config, runs, writes=False) as pipeline:
        table, decisions = samples_of(pipeline), read_decisions(pipeline.folder.root / FILE)
        before = {row["id"]: row for row in table.to_pylist()}
        rows = [_as_posted(row) for row in reviewed_rows(table, decisions).table.to_pylist()]
        decided = {name: one for name, row in before.items() if (one := _settled(row, decisions))}
        if not decided:
            raise GoldError(
                "no sample is kept or removed as it is now: `echo-hf review` decides about them"
            )
        posts = _posts(pipeline.config, rows, pipeline.folder.pictures)
    left_out: Counter[NotGold] = Counter()
    threads = list(_threads(rows, decided, posts, left_out))
    if not threads:
        why = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
        raise GoldError(f"no thread can be exported ({why}): review all samples of a thread")
    return _written(folder, threads, posts, left_out)


def _as_posted(row: Row) -> Row:
    """A row whose images have the digests that they have in the files of posts, as well."""
    cleaned = cleaned_in(row)
    return {
        **row,
        **{
            name: [*row[name], *(old for old, new in cleaned.items() if new in row[name])]
            for name in ("input_images", "output_images")
        },
    }


def _settled(row: Row, decisions: Decisions) -> Decision | None:
    last = decisions.by_id.get(row["id"])
    settles = last is not None and last.decision in ("keep", "remove") and last.is_about(row)
    covers = settles and last is not None and (last.decision == "remove" or last.covers(row))
    return last if covers else None


def _posts(config: Config, rows: Sequence[Row], pictures: Any) -> GoldPosts:
    named = (url for row in rows for url in row["post_urls"] or ())
    return read_posts(config.posts, filter(None, map(canonical_url, named)), pictures)


def _threads(
    rows: Iterable[Row],
    decided: Mapping[str, Decision],
    posts: GoldPosts,
    left_out: Counter[NotGold],
) -> Iterator[ReviewedThread]:
    by_root: dict[str | None, list[Row]] = {}
    for row in rows:
        by_root.setdefault(posts.root_of.get(row["post_urls"][0]), []).append(row)
    posted = {row["root_url"]: row["posts"] for row in posts.threads.to_list()}
    for root, own in by_root.items():
        reviewed = [row for row in own if row["id"] in decided]
        if root is None or root not in posted:
            left_out[NotGold.NOT_IN_POSTS] += len(reviewed)
            continue
        kept = {row["id"] for row in reviewed if decided[row["id"]].decision == "keep"}
        thread = ReviewedThread(root, own, kept, posted[root])
        reason = NotGold.NOT_REVIEWED if len(reviewed) < len(own) else why_not(thread)
        if reason is None:
            left_out[NotGold.IN_SCREENSHOT] += len(own) if thread.has_screenshot else 0
            yield thread
        else:
            left_out[reason] += len(reviewed)


def _written(
    folder: Path,
    threads: Sequence[ReviewedThread],
    posts: GoldPosts,
    left_out: Counter[NotGold],
) -> ExportedGold:
    extract = [extract_line(thread) for thread in threads]
    clear = [thread for thread in threads if not thread.has_screenshot]
    roles = [line for thread in clear for line in roles_lines(thread, posts.pictures)]
    with replaced_whole(folder) as partial:
        for name, lines in (("extract", extract), ("roles", roles)):
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            (partial / f"{name}.jsonl").write_text(text, "utf-8")
        # The reader that will read it has the last word, before anything is where it was wanted.
        check_agreement(read_gold(partial), posts, "the config's posts")
    return ExportedGold(
        folder,
        len(threads),
        sum(len(line["samples"]) for line in extract),
        sum(len(line["pictures"]) for line in roles),
        {reason: count for reason, count in sorted(left_out.items()) if count},
    )
