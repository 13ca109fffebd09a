"""Why a part of an analysis has no figures, or leaves a row out."""

from __future__ import annotations

from echo_hf.reasons.reason import Reason


class NotAnalyzed(Reason):
    """Why a part of the analysis has no figures, or leaves a row out."""

    MISSING_EXTRA = "missing_extra", "a package that it stands on is not installed"
    NOT_CONFIGURED = "not_configured", "the config names no model for it"
    MODEL_UNAVAILABLE = "model_unavailable", "the model cannot be loaded, or fails"
    NO_PROMPTS = "no_prompts", "there is no prompt to look at"
    NO_COMMENTS = "no_comments", "no comment was judged, or none speaks of a failure"
    NO_POSTS = "no_posts", "the posts are not at hand: a release does not hold them"
    NO_RUN = "no_run", "the stages' counts are not at hand"
    NO_TEXT = "no_text", "the row holds no text, or its words are left out of the release"
    BROKEN_TEXT = "broken_text", "the row holds half characters, which no file can hold"
    FEW_PROMPTS = "few_prompts", "the set has fewer prompts than sets are compared at"
    FEW_WORDS = "few_words", "the prompt has fewer than two words"
    UNSEGMENTED = (
        "unsegmented",
        "its script writes no spaces, and the package that finds words in it is not installed",
    )
    NO_SCORED_TOKEN = (
        "no_scored_token",
        "it is a single token, whose probability nothing before it says",
    )
    NOT_FINITE = "not_finite", "the model gives it no finite probability"
    NOT_SHOWN = "not_shown", "the plot shows a random draw of the set, and it is not in it"
    BAD_FONT = "bad_font", "the font cannot be read"
    NO_GLYPHS = "no_glyphs", "the font has no glyph for one of its characters"
    NO_SPACE = "no_space", "there is no space left for it in the picture"
