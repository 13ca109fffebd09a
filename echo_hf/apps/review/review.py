"""Have people review the samples of a run in their browsers: `echo-hf review CONFIG --app`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from echo_hf._infra.atomic import complete
from echo_hf.apps.page import AskedPage, Place, ShownImages, serve
from echo_hf.apps.review.controller import ReviewController
from echo_hf.apps.review.page import View, desk_page
from echo_hf.builder.build import RUNS, opened
from echo_hf.builder.review import read_cases
from echo_hf.config.loading import Config
from echo_hf.curate.decisions import images_of
from echo_hf.curate.splits import Splits
from echo_hf.errors import ReviewError
from echo_hf.reasons import Reject


def desk_of(config: Config | Path | str, *, runs: Path | str = RUNS) -> ReviewController:
    with opened(config, runs, writes=False) as pipeline:
        root, cases = pipeline.folder.root, read_cases(pipeline)
        if not cases:
            raise ReviewError(f"{str(root)!r} has no sample to review")
        file = complete(pipeline.folder.stage(Splits.name)) / "rejects.parquet"
        columns = ["id", "_reason", "_detail"]
        rejects = pq.read_table(file, columns=columns).to_pylist() if file.exists() else ()
        reason = Reject.DUPLICATE_OF
        duplicates = {row["id"]: row["_detail"] for row in rejects if row["_reason"] == reason}
        desk = ReviewController.of(cases, duplicates, root)
    desk.ledger.catch_up()  # what a killed server had not written any more
    return desk


def review(
    desk: ReviewController,
    *,
    place: Place,
    people: Iterable[str] = (),
    anyone: bool = False,
    ready: Callable[[str], None],
) -> None:
    """Serves the page until it is stopped; a decision is in the file before the page moves on."""
    images = ShownImages(desk.images)
    for case in desk.cases.values():
        images.admit(images_of(case.row))
        for post in case.context:
            images.admit(one["sha256"] for one in post["pictures"] or () if one["sha256"])
    for one in desk.ledger.decided().by_id.values():
        images.admit(one.changed.images if one.changed else ())

    def shown(view: View, answer: int = 0) -> str:
        # What a reviewer has just cut out was not there when the page was opened.
        images.admit((*view.shown["input_images"], *view.shown["output_images"]))
        return desk_page(view, images.address, answer)

    def opened(person: str) -> str:
        return shown(desk.view(person))

    def acted(person: str, said: Mapping[str, Any], answer: int) -> str:
        return shown(desk.act(person, said), answer)

    scripts = ("boxes.js", "page.js")
    page = AskedPage("Review samples", "review", scripts, "page.css", opened, acted)
    serve(page, images, place=place, people=people, anyone=anyone, ready=ready)
