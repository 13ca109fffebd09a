"""Have people review the samples of a run in their browsers: `echo-hf review CONFIG --app`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from echo_hf._infra.atomic import complete
from echo_hf.apps.page import (
    HERE,
    Address,
    AppUsers,
    AskedPage,
    Place,
    ShownImages,
    answer_of,
    check_installed,
    check_reachable,
    people_of,
    serve,
)
from echo_hf.apps.review.controller import ReviewController
from echo_hf.apps.review.page import View, desk_page
from echo_hf.builder.build import RUNS, opened
from echo_hf.builder.review import read_cases
from echo_hf.config.loading import Config
from echo_hf.curate.decisions import images_of
from echo_hf.curate.splits import Splits
from echo_hf.errors import ReviewError
from echo_hf.reasons import Reject

TITLE = "Review samples"


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
    check_installed("`echo-hf review --app`")
    admitted = people_of(people)
    check_reachable(place.host, admitted, anyone=anyone)
    images = ShownImages(desk.images)
    images.admit(digests_of(desk))

    def saved(view: View) -> None:
        # What a reviewer has just cut out was not there when the page was opened.
        images.admit((*view.shown["input_images"], *view.shown["output_images"]))

    serve(page(desk, admitted, images.address, saved), images, place, ready)


def digests_of(desk: ReviewController) -> Iterator[str]:
    for case in desk.cases.values():
        yield from images_of(case.row)
        for post in case.context:
            yield from (one["sha256"] for one in post["pictures"] or () if one["sha256"])
    for one in desk.ledger.decided().by_id.values():
        yield from one.changed.images if one.changed else ()


def page(
    desk: ReviewController, people: AppUsers, address: Address, saved: Callable[[View], None]
) -> AskedPage:
    def shown(view: View, answer: int = 0) -> str:
        saved(view)
        return desk_page(view, address, answer)

    def opened(person: str) -> str:
        return shown(desk.view(person))

    def acted(person: str, said: Mapping[str, Any]) -> str:
        return shown(desk.act(person, said), answer_of(said))

    folder = HERE.joinpath("review")
    scripts = (folder.joinpath("boxes.js"), folder.joinpath("page.js"))
    return AskedPage(TITLE, people, scripts, folder.joinpath("page.css"), opened, acted)
