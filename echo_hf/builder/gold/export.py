"""Make gold for `check-engine` from what reviewers decided: whole threads only."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echo_hf._infra.atomic import replaced_whole
from echo_hf.builder.build import opened
from echo_hf.builder.gold.folder import read_gold
from echo_hf.builder.gold.posts import GoldPosts, Row, check_agreement, read_posts, written_in
from echo_hf.builder.review import samples_of
from echo_hf.collect.urls import canonical_url
from echo_hf.config.loading import Config
from echo_hf.curate.decisions import FILE, Decisions, cleaned_in, read_decisions
from echo_hf.curate.edits import reviewed_rows
from echo_hf.errors import GoldError
from echo_hf.reasons import NotGold
from echo_hf.samples.spans import squeezed


@dataclass(frozen=True)
class ReviewedThread:
    """A thread, its samples, those of them that were kept, and those that gold lists."""

    root: str
    posts: Sequence[Row]
    samples: Sequence[Row]
    kept: Sequence[Row]
    listed: Sequence[Row]  # also those removed whose words stand there

    @property
    def has_screenshot(self) -> bool:
        """Whether a sample has one; whether it shows a conversation or a collage nobody says."""
        return any(row["screenshot"] for row in self.samples)

    def extract_line(self) -> dict[str, Any]:
        """The line of `extract.jsonl`; a post is feedback of the first sample that has it."""
        said, samples = set[str](), list[dict[str, Any]]()
        for row in self.listed:
            urls = dict.fromkeys(one["post_url"] for one in row["community_feedback"] or ())
            sample = {name: row[name] for name in ("prompt", "quality", "post_urls")}
            sample["feedback_optional"] = [url for url in urls if url not in said]
            samples.append({**sample, "optional": row not in self.kept})
            said.update(urls)
        return {"root_url": self.root, "samples": samples}

    def roles_lines(self, posts: GoldPosts) -> Iterator[dict[str, Any]]:
        lost = {one for row in self.samples if row not in self.kept for one in _shown(row)}
        images: dict[str, list[Row]] = {row["id"]: [] for row in self.kept}
        for place, post in enumerate(self.posts if images else ()):
            for index, digest in enumerate(posts.images.get(post["url"], ())):
                owner = next((row for row in self.kept if digest in _shown(row)), None)
                if digest is None or (owner is None and digest in lost):
                    continue
                role = _shown(owner)[digest] if owner else "neither"
                at = {"post_url": post["url"], "index": index, "role": role}
                images[(owner or self._near(place))["id"]].append(at)
        for row in self.kept:
            yield {"root_url": self.root, "prompt": row["prompt"], "pictures": images[row["id"]]}

    def _near(self, place: int) -> Row:
        """The kept sample that a post belongs to, or that it stands below; else the first."""
        while place >= 0:
            for row in self.kept:
                if self.posts[place]["url"] in row["post_urls"]:
                    return row
            place = self.posts[place]["parent"]
        return self.kept[0]


def _shown(row: Row) -> dict[str, str]:
    inputs = dict.fromkeys(row["input_images"] or (), "input")
    return inputs | dict.fromkeys(row["output_images"] or (), "output")


@dataclass(frozen=True)
class ExportedGold:
    folder: Path
    threads: int
    samples: int
    images: int
    left_out: Mapping[NotGold, int]

    def told(self) -> Iterator[str]:
        what = f"{self.samples} samples of {self.threads} threads"
        yield f"{what}, and the roles of {self.images} images, in {self.folder}"
        for reason, count in self.left_out.items():
            yield f"{count} reviewed samples left out, {reason}: {reason.meaning}"
        yield f"next: echo-hf check-engine CONFIG --gold {self.folder}"


def export_gold(
    config: Config | Path | str, folder: Path, *, runs: Path | str | None = None
) -> ExportedGold:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise GoldError(f"{str(folder)!r} is not empty: name a new folder")
    with opened(config, runs, writes=False) as run:
        table, decisions = samples_of(run), read_decisions(run.folder.root / FILE)
        rows = [_as_posted(row) for row in reviewed_rows(table, decisions).table.to_pylist()]
        kept = {row["id"]: _is_kept(row, decisions) for row in table.to_pylist()}
        decided = {name: one for name, one in kept.items() if one is not None}
        if not decided:
            raise GoldError(
                "no sample is kept or removed as it is now: `echo-hf review` decides about them"
            )
        named = (url for row in rows for url in row["post_urls"] or ())
        urls = filter(None, map(canonical_url, named))
        posts = read_posts(run.config.posts, urls, run.folder.images)
    left_out: Counter[NotGold] = Counter()
    threads = list(_threads(rows, decided, posts, left_out))
    if not threads:
        why = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
        raise GoldError(f"no thread can be exported ({why}): review all samples of a thread")
    extract = [thread.extract_line() for thread in threads]
    clear = [thread for thread in threads if not thread.has_screenshot]
    roles = [line for thread in clear for line in thread.roles_lines(posts)]
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


def _as_posted(row: Row) -> Row:
    """A row whose images have the digests that they have in the files of posts, as well."""
    cleaned = cleaned_in(row).items()
    names = ("input_images", "output_images")
    posted = {name: [old for old, new in cleaned if new in row[name]] for name in names}
    return {**row, **{name: [*row[name], *posted[name]] for name in names}}


def _is_kept(row: Row, decisions: Decisions) -> bool | None:
    """Whether the last decision keeps or removes it as it is now; null when it does neither."""
    last = decisions.by_id.get(row["id"])
    if last is None or last.decision not in ("keep", "remove") or not last.is_about(row):
        return None
    return last.decision == "keep" if last.decision == "remove" or last.covers(row) else None


def _threads(
    rows: Iterable[Row], decided: Mapping[str, bool], posts: GoldPosts, left_out: Counter[NotGold]
) -> Iterator[ReviewedThread]:
    by_root: dict[str | None, list[Row]] = {}
    for row in rows:
        by_root.setdefault(posts.root_of.get(row["post_urls"][0]), []).append(row)
    posted = {row["root_url"]: row["posts"] for row in posts.threads}
    for root, own in by_root.items():
        reviewed = sum(row["id"] in decided for row in own)
        if root is None or root not in posted:
            left_out[NotGold.NOT_IN_POSTS] += reviewed
            continue
        written = written_in(posted[root])
        kept = [row for row in own if decided.get(row["id"])]
        prompts = {squeezed(row["prompt"]) for row in kept}
        listed = list(kept)
        for row in own:  # what was removed is no fault of who finds it
            if row not in kept and squeezed(row["prompt"]) not in prompts:
                listed += [row] if written.holds(row["prompt"]) else []
        thread = ReviewedThread(root, posted[root], own, kept, listed)
        faults = {
            NotGold.NOT_REVIEWED: reviewed < len(own),
            NotGold.COMPLETION: any(row["prompt_fill_blank"] for row in own),
            NotGold.NOT_COPIED: not all(written.holds(row["prompt"]) for row in kept),
            NotGold.SAME_PROMPT: len({squeezed(row["prompt"]) for row in listed}) < len(listed),
        }
        if fault := next((one for one, is_so in faults.items() if is_so), None):
            left_out[fault] += reviewed
        else:
            left_out[NotGold.IN_SCREENSHOT] += len(own) if thread.has_screenshot else 0
            yield thread
