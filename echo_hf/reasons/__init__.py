"""The closed lists of reasons: why a row was rejected, quarantined or noted, or a post is missing.

Nothing is silently lost: whatever leaves the main table, or is altered on the way, does so under
one of these names, is kept beside the stage's result, and is counted in its stats.
"""

from echo_hf.reasons.analysis import NotAnalyzed
from echo_hf.reasons.metrics import MetricReason
from echo_hf.reasons.outputs import NoTask, NotTabled, Outcome, OutcomeStage
from echo_hf.reasons.pictures import BadPicture, PictureNotice
from echo_hf.reasons.posts import CrawlEnd, Missing, RefreshEnd, Unfetched
from echo_hf.reasons.ratings import (
    IgnoredRating,
    NotAudited,
    NotJudged,
    NotRanked,
    Unrated,
    Unscored,
)
from echo_hf.reasons.reason import Reason, Status
from echo_hf.reasons.release import LeftOut, Match
from echo_hf.reasons.review import NotGold, Review
from echo_hf.reasons.rows import Failed, Notice, Reject

__all__ = [
    "BadPicture",
    "CrawlEnd",
    "Failed",
    "IgnoredRating",
    "LeftOut",
    "Match",
    "MetricReason",
    "Missing",
    "NoTask",
    "NotAnalyzed",
    "NotAudited",
    "NotGold",
    "NotJudged",
    "NotRanked",
    "NotTabled",
    "Notice",
    "Outcome",
    "OutcomeStage",
    "PictureNotice",
    "Reason",
    "RefreshEnd",
    "Reject",
    "Review",
    "Status",
    "Unfetched",
    "Unrated",
    "Unscored",
]
