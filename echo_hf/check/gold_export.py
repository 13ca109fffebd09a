"""Make gold for `check-engine` of what reviewers decided: whole threads, or nothing of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echo_hf.check.agreement import check_agreement
from echo_hf.check.gold_folder import read_gold
from echo_hf.check.gold_of_thread import ReviewedThread, extract_line, roles_lines, why_not
from echo_hf.check.gold_posts import GoldPosts, read_posts
from echo_hf.collect.urls import canonical_url
from echo_hf.config import Config
from echo_hf.curate.cases import samples_of
from echo_hf.curate.decision import Decision, cleaned_in
from echo_hf.curate.decision_file import FILE, read_decisions
from echo_hf.curate.decisions import Decisions
from echo_hf.curate.reviewed import reviewed_rows
from echo_hf.errors import GoldError
from echo_hf.reasons import NotGold
from echo_hf.run import RUNS, opened
from echo_hf.swap import replaced_whole

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ExportedGold:
    """What was made of reviews.

    Attributes:
        folder: Where it was written.
        threads: Threads in it.
        samples: Samples in it.
        pictures: Pictures whose role is in it.
        left_out: Reviewed samples that are not in it, or not wholly, by reason.
    """

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
    """Writes what reviewers decided as gold for `check-engine`.

    A thread is exported when all of its samples were kept or removed as they are now. What was
    removed is optional there where its words stand in the thread, and else no sample. Verdicts on
    feedback, tasks and hazards are not what reviewers are asked about: there is no gold of them.

    Args:
        config: The config, or the path of its file.
        folder: Where to write; new or empty.
        runs: Folder of runs.

    Returns:
        What was written, and what was left out.

    Raises:
        RunError: Nothing was built yet.
        GoldError: There is nothing to write, or something is in the folder.
    """
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
