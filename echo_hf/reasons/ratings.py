"""Why outputs have no rating, rank or win rate."""

from __future__ import annotations

from echo_hf.reasons.reason import Reason


class IgnoredRating(Reason):
    """Why a rating does not count; it is named and counted in the result."""

    OTHER_RUBRIC = (
        "other_rubric",
        "a rating by another rubric than the one that is scored; text_rendering has figures of "
        "its own",
    )
    NO_OUTPUT = "no_output", "the table of outputs has no such sample and system"
    NO_PICTURE = "no_picture", "the table of outputs says that there is no picture to rate"
    OTHER_DIGEST = "other_digest", "the judge saw another version of the sample than the system"


class Unrated(Reason):
    """Why a judge that answered, or could not be asked, gave no rating: values of `outcome`."""

    NO_RATING = "no_rating", "the answer holds no rating in the form that was asked for"
    BEYOND_SCALE = "beyond_scale", "the rating is not one of the judge's scale"
    UNSHOWABLE = "unshowable", "the output or an input cannot be shown as a picture"
    NO_CHOICE = "no_choice", "the answer names none of the two, and no tie, in the form asked for"
    TWO_CHOICES = "two_choices", "the answer makes more than one choice in the form asked for"


class NotJudged(Reason):
    """Why no judge is asked about an output."""

    WITHOUT_PICTURE = "without_picture", "the system made no picture of the sample"


class NotRanked(Reason):
    """Why people do not rank an output or a sample."""

    LOST_PICTURE = "lost_picture", "the file of the picture is not among the run's pictures"
    FEW_OUTPUTS = "few_outputs", "fewer than two systems made a picture of the sample"
    NOT_DRAWN = "not_drawn", "enough samples of its split were drawn before it"


class NotAudited(Reason):
    """Why a judge neither passed nor failed a part of its audit."""

    FEW_RATINGS = "few_ratings", "fewer than 5 of these pictures, or of real outputs, were rated"
    NO_ROOM = (
        "no_room",
        "the judge rates real outputs so low that nothing can be rated that far below them",
    )


class Unscored(Reason):
    """Why a measure has no number."""

    ONE_SYSTEM = "one_system", "there is no other system to compare it with"
    NOT_RATED = "not_rated", "no judge rated any of its outputs"
    NOTHING_IN_COMMON = (
        "nothing_in_common",
        "no judge rated it and another system on the same sample",
    )
    FEW_SAMPLES = "few_samples", "fewer than 10 samples say too little of how far others may differ"
    NO_SPREAD = "no_spread", "all samples give the same, which says nothing of how others differ"
    NO_DRAWS = "no_draws", "no bootstrap was asked for"
    ONE_COMPARISON = "one_comparison", "a single comparison has no standard error"
    NO_DIFFERENCE = "no_difference", "the two do as well as each other: no number separates them"
    UNBOUNDED = (
        "unbounded",
        "some systems never lose a point to the others, so that no finite strength explains it",
    )
    ZERO_SECOND = "zero_second", "the second best value is not above 0, so that no share of it is"
    NO_GAP = "no_gap", "the other benchmark has no gap between its best two to compare with"
    NO_OWN_SYSTEM = (
        "no_own_system",
        "no pair of a system of the judge's developer and another's was rated",
    )
    NO_OTHER_JUDGE = "no_other_judge", "no judge of another developer rated the same pairs"
    NO_ORDER = (
        "no_order",
        "nowhere do both put two of the same systems in an order: too few in common, or all tied",
    )
    NO_VERDICTS = "no_verdicts", "no pair of outputs has a verdict, or not in both orders"
    NO_WINNERS = "no_winners", "every pair is a tie in one of the two ways, or in both"
    NO_CEILING = "no_ceiling", "people do not agree with each other, so that no share of it is"
