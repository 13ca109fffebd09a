"""Why posts and their pictures are not there, and why nobody is asked for more."""

from __future__ import annotations

from echo_hf.reasons.reason import Reason


class Missing(Reason):
    """Why the content of a post is not there: the values of `posts.missing`."""

    DELETED = "deleted", "removed by its author or the platform"
    PROTECTED = "protected", "the account is private"
    BLOCKED = "blocked", "the account blocks, or is suspended or withheld"
    NOT_FOUND = "not_found", "the platform knows no such post"
    NOT_FETCHED = "not_fetched", "named by another post, never collected"
    REMOVED = "removed", "taken out because somebody asked for it; its address is a hash"


class CrawlEnd(Reason):
    """Why a platform is asked no more for now."""

    NOTHING_LEFT = "nothing_left", "every query is answered, and nothing new came of the replies"
    POSTS_SPENT = "posts_spent", "the budget of posts is used up; a larger one goes on from here"
    DOLLARS_SPENT = (
        "dollars_spent",
        "the budget of money is used up; a larger one goes on from here",
    )
    ROUNDS_DONE = "rounds_done", "reply trees were followed as often as expand.rounds says"
    EXPANSION_FULL = "expansion_full", "as many posts came by reply trees as expand.posts says"
    SOME_FAILED = "some_failed", "some questions failed and wait for the next run"
    TOLD_TO_WAIT = "told_to_wait", "the platform wants to be left alone for long; come back then"
    KEY_REFUSED = (
        "key_refused",
        "the platform refuses the key, or what it may do; the next run goes on from here",
    )
    OUT_OF_REACH = (
        "out_of_reach",
        "nobody could sign in, or one question after the other failed; the next run tries again",
    )


class RefreshEnd(Reason):
    """Why a platform is asked about no more posts for now."""

    ALL_ASKED = "all_asked", "all its posts were asked about"
    CANNOT_SAY = "cannot_say", "it has no way to say which posts are gone"
    NOT_PAID = "not_paid", "it charges for each post; --budget says how much it may take"
    LATER = "later", "the platform wants to be left alone for long; come back then"


class Unfetched(Reason):
    """Why the picture of an address is not there."""

    NOT_REQUESTED = (
        "not_requested",
        "nobody was asked for the picture: fetching is switched off, or the run is offline",
    )
    GONE = "gone", "the server says that there is no such picture (404 or 410)"
    FORBIDDEN = "forbidden", "the server refuses the request (another 4xx)"
    RATE_LIMITED = "rate_limited", "the server asks for fewer requests, or to wait too long"
    SERVER_ERROR = "server_error", "the server failed, or gave an answer without a picture"
    TIMEOUT = "timeout", "the server took too long"
    UNREACHABLE = "unreachable", "no connection could be made or kept"
    PRIVATE_ADDRESS = "private_address", "the host's address is not one of the public internet"
    NOT_ALLOWED = "not_allowed", "the address has a scheme, a port or a login that is not allowed"
    TOO_MANY_REDIRECTS = "too_many_redirects", "the address led from one to the next without end"
    TOO_LARGE = "too_large", "the picture has more bytes or pixels than are fetched"
    WRONG_TYPE = "wrong_type", "what came is no picture in one of the formats that are read"
    UNDECODABLE = "undecodable", "what came begins as a picture does, but cannot be decoded"
