"""Export gold for `check-engine` from the decisions of reviewers: whole threads only."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echo_hf._infra.atomic import replace_folder
from echo_hf.builder.build import open_run
from echo_hf.builder.gold.folder import read_gold
from echo_hf.builder.gold.posts import GoldPosts, check_agreement, index_texts, read_gold_posts
from echo_hf.builder.review import read_built_samples
from echo_hf.collect.urls import canonical_url
from echo_hf.config.loading import Config
from echo_hf.curate.decisions import DECISIONS_FILE, ReviewDecisions, cleaned_images, read_decisions
from echo_hf.curate.edits import apply_decisions
from echo_hf.errors import GoldError
from echo_hf.reasons import Reason
from echo_hf.samples.spans import squeeze
from echo_hf.tables import Row


class NotGold(Reason):
    """Why a reviewed sample is not in the gold that is made of reviews."""

    NOT_REVIEWED = "not_reviewed", "a sample of its thread was not reviewed as it is now"
    COMPLETION = "completion", "a sample of its thread completes a template: one sample in gold"
    NOT_COPIED = "not_copied", "a prompt of its thread has words that nobody wrote there"
    SAME_PROMPT = "same_prompt", "samples of its thread share a prompt, by which gold names them"
    NOT_IN_POSTS = "not_in_posts", "its thread is not in the files of posts that the config names"
    IN_SCREENSHOT = "in_screenshot", "a screenshot without a layout: gold has no images of it"


@dataclass(frozen=True)
class ReviewedThread:
    """A thread, its samples, those of them that were kept, and those that gold lists."""

    root: str
    posts: Sequence[Row]
    samples: Sequence[Row]
    kept: Sequence[Row]
    listed: Sequence[Row]  # also removed ones whose prompt stands in the thread

    @property
    def has_screenshot(self) -> bool:
        """Whether a sample has a screenshot; of what kind it is, reviews do not say."""
        return any(row["screenshot"] for row in self.samples)

    def extract_line(self) -> dict[str, Any]:
        """Return the line of `extract.jsonl`; a post is feedback of the first sample with it."""
        listed_urls, samples = set[str](), list[dict[str, Any]]()
        for row in self.listed:
            urls = dict.fromkeys(comment["post_url"] for comment in row["community_feedback"] or ())
            sample = {name: row[name] for name in ("prompt", "quality", "post_urls")}
            sample["feedback_optional"] = [url for url in urls if url not in listed_urls]
            samples.append({**sample, "optional": row not in self.kept})
            listed_urls.update(urls)
        return {"root_url": self.root, "samples": samples}

    def roles_lines(self, posts: GoldPosts) -> Iterator[dict[str, Any]]:
        dropped = {
            sha256 for row in self.samples if row not in self.kept for sha256 in _map_roles(row)
        }
        images: dict[str, list[Row]] = {row["id"]: [] for row in self.kept}
        for place, post in enumerate(self.posts if images else ()):
            for index, digest in enumerate(posts.images.get(post["url"], ())):
                owner = next((row for row in self.kept if digest in _map_roles(row)), None)
                if digest is None or (owner is None and digest in dropped):
                    continue
                role = _map_roles(owner)[digest] if owner else "neither"
                image_role = {"post_url": post["url"], "index": index, "role": role}
                images[(owner or self._find_nearest(place))["id"]].append(image_role)
        for row in self.kept:
            yield {"root_url": self.root, "prompt": row["prompt"], "pictures": images[row["id"]]}

    def _find_nearest(self, place: int) -> Row:
        """Return the kept sample that a post belongs to, or stands below; else the first."""
        while place >= 0:
            for row in self.kept:
                if self.posts[place]["url"] in row["post_urls"]:
                    return row
            place = self.posts[place]["parent"]
        return self.kept[0]


def _map_roles(row: Row) -> dict[str, str]:
    inputs = dict.fromkeys(row["input_images"] or (), "input")
    return inputs | dict.fromkeys(row["output_images"] or (), "output")


@dataclass(frozen=True)
class GoldExport:
    folder: Path
    threads: int
    samples: int
    images: int
    left_out: Mapping[NotGold, int]

    def describe(self) -> Iterator[str]:
        summary = f"{self.samples} samples of {self.threads} threads"
        yield f"{summary}, and the roles of {self.images} images, in {self.folder}"
        for reason, count in self.left_out.items():
            yield f"{count} reviewed samples left out, {reason}: {reason.meaning}"
        yield f"next: echo-hf check-engine CONFIG --gold {self.folder}"


def export_gold(
    config: Config | Path | str, folder: Path, *, runs: Path | str | None = None
) -> GoldExport:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise GoldError(f"{str(folder)!r} is not empty: name a new folder")
    with open_run(config, runs, writes=False) as run:
        table, decisions = read_built_samples(run), read_decisions(run.folder.root / DECISIONS_FILE)
        rows = [_as_posted(row) for row in apply_decisions(table, decisions).table.to_pylist()]
        is_kept_by_id = {row["id"]: _is_kept(row, decisions) for row in table.to_pylist()}
        decided = {name: is_kept for name, is_kept in is_kept_by_id.items() if is_kept is not None}
        if not decided:
            raise GoldError(
                "no sample is kept or removed as it is now: `echo-hf review` decides about them"
            )
        post_urls = (url for row in rows for url in row["post_urls"] or ())
        urls = filter(None, map(canonical_url, post_urls))
        posts = read_gold_posts(run.config.posts, urls, run.folder.images)
    left_out: Counter[NotGold] = Counter()
    threads = list(_select_threads(rows, decided, posts, left_out))
    if not threads:
        reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
        raise GoldError(f"no thread can be exported ({reasons}): review all samples of a thread")
    extract = [thread.extract_line() for thread in threads]
    clear = [thread for thread in threads if not thread.has_screenshot]
    roles = [line for thread in clear for line in thread.roles_lines(posts)]
    with replace_folder(folder) as partial:
        for name, lines in (("extract", extract), ("roles", roles)):
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            (partial / f"{name}.jsonl").write_text(text, "utf-8")
        # Check with the reader of gold before the folder gets its name.
        check_agreement(read_gold(partial), posts, "the config's posts")
    return GoldExport(
        folder,
        len(threads),
        sum(len(line["samples"]) for line in extract),
        sum(len(line["pictures"]) for line in roles),
        {reason: count for reason, count in sorted(left_out.items()) if count},
    )


def _as_posted(row: Row) -> Row:
    """Return a row whose images also have the digests that they have in the files of posts."""
    cleaned = cleaned_images(row).items()
    names = ("input_images", "output_images")
    posted = {name: [old for old, new in cleaned if new in row[name]] for name in names}
    return {**row, **{name: [*row[name], *posted[name]] for name in names}}


def _is_kept(row: Row, decisions: ReviewDecisions) -> bool | None:
    """Return whether the last decision keeps or removes a row as it is now; null for neither."""
    last = decisions.by_id.get(row["id"])
    if last is None or last.decision not in ("keep", "remove") or not last.is_about(row):
        return None
    return last.decision == "keep" if last.decision == "remove" or last.covers(row) else None


def _select_threads(
    rows: Iterable[Row], decided: Mapping[str, bool], posts: GoldPosts, left_out: Counter[NotGold]
) -> Iterator[ReviewedThread]:
    by_root: dict[str | None, list[Row]] = {}
    for row in rows:
        by_root.setdefault(posts.root_of.get(row["post_urls"][0]), []).append(row)
    posted = {row["root_url"]: row["posts"] for row in posts.threads}
    for root, own_rows in by_root.items():
        reviewed = sum(row["id"] in decided for row in own_rows)
        if root is None or root not in posted:
            left_out[NotGold.NOT_IN_POSTS] += reviewed
            continue
        span_index = index_texts(posted[root])
        kept = [row for row in own_rows if decided.get(row["id"])]
        prompts = {squeeze(row["prompt"]) for row in kept}
        listed = list(kept)
        for row in own_rows:  # an engine may find a removed sample: make it optional
            if row not in kept and squeeze(row["prompt"]) not in prompts:
                listed += [row] if span_index.contains(row["prompt"]) else []
        thread = ReviewedThread(root, posted[root], own_rows, kept, listed)
        faults = {
            NotGold.NOT_REVIEWED: reviewed < len(own_rows),
            NotGold.COMPLETION: any(row["prompt_fill_blank"] for row in own_rows),
            NotGold.NOT_COPIED: not all(span_index.contains(row["prompt"]) for row in kept),
            NotGold.SAME_PROMPT: len({squeeze(row["prompt"]) for row in listed}) < len(listed),
        }
        if fault := next((reason for reason, is_so in faults.items() if is_so), None):
            left_out[fault] += reviewed
        else:
            left_out[NotGold.IN_SCREENSHOT] += len(own_rows) if thread.has_screenshot else 0
            yield thread
