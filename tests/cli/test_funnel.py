"""The funnel in words."""

from __future__ import annotations

from echo_hf.cli.progress import headlines, losses
from echo_hf.pipeline.result import StageStats


def test_the_headlines_are_the_papers_figures() -> None:
    """With the paper's own counts the shares are the 47, 20 and 66 percent that it prints."""
    stats = [
        StageStats("collect", 70_000, 68_000, tally={"posts": 68_000, "merged": 2000}),
        StageStats(
            "relevance",
            68_000,
            68_000,
            tally={"score_1": 36_000, "score_4": 20_000, "score_5": 12_000},
        ),
        StageStats("threads", 68_000, 9000, tally={"posts": 51_000}),
        StageStats(
            "extract", 9000, 35_000, tally={"Benchmark": 7000, "Analysis": 23_100, "Trash": 4900}
        ),
        StageStats(
            "splits",
            35_000,
            30_100,
            tally={"image_to_image": 710, "text_to_image": 848, "analysis": 30_100},
        ),
    ]

    assert headlines(stats) == [
        "68,000 posts collected from 70,000 records, 2,000 seen more than once",
        "32,000 of 68,000 scored posts are relevant (47 %); 9,000 threads with 51,000 posts stay",
        "35,000 samples extracted: 20 % Benchmark, 66 % Analysis, 14 % Trash",
        "710 image_to_image, 848 text_to_image, 30,100 analysis samples released",
    ]


def test_a_run_cut_short_has_the_headlines_it_reached() -> None:
    """Stages that have not run say nothing."""
    assert headlines([StageStats("collect", 3, 2)]) == ["2 posts collected from 3 records"]
    assert headlines([]) == []


def test_every_loss_has_its_meaning() -> None:
    """Rejects, quarantine and notices are listed with the meaning of their reason."""
    stats = StageStats(
        "extract", 9, 5, rejected={"no_sample": 2}, quarantined={"cut": 1}, noted={"cycle": 3}
    )

    assert losses(stats) == [
        ("no_sample", 2, "the model found no sample in the thread"),
        ("cut", 1, "the answer ended at the token limit"),
        ("cycle", 3, "replies form a circle; it is cut at its earliest post"),
    ]
