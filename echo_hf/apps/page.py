"""An app's page: served from this machine, in Gradio, with images under names that tell nothing."""

from __future__ import annotations

import hashlib
import hmac
import io
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from PIL import Image

from echo_hf.apps.people import AppUsers, is_loopback
from echo_hf.errors import EchoError, ImageError, MissingExtraError, RunError
from echo_hf.images.loader import load_rgb
from echo_hf.images.store import ImageStore

if TYPE_CHECKING:
    import fastapi
    import gradio


@dataclass(frozen=True)
class AskedPage:
    """What makes one app's page another than the other's."""

    title: str
    people: AppUsers
    scripts: tuple[Traversable, ...]
    opened: Callable[[str], str]
    acted: Callable[[str, Mapping[str, Any]], str]

    def blocks(self) -> gradio.Blocks:
        import gradio

        def opened(request: gradio.Request) -> str:
            return self.shown_to(request.username or request.query_params.get("person"))

        def acted(event: gradio.EventData, request: gradio.Request) -> str:
            said: Mapping[str, Any] = event._data if isinstance(event._data, Mapping) else {}
            try:
                # Who signed in is who they are, whatever the page says.
                person = self.people.admitted(str(request.username or said.get("person")))
                return self.acted(person, said)
            except (EchoError, OSError) as error:  # a full disk is no reason to end
                raise gradio.Error(str(error), print_exception=False) from None

        # Annotations that are text would be looked up among this module's names.
        opened.__annotations__ = {"request": gradio.Request}
        acted.__annotations__ = {"event": gradio.EventData, "request": gradio.Request}
        with gradio.Blocks(title=self.title, analytics_enabled=False, fill_width=True) as blocks:
            script = "\n".join(one.read_text("utf-8") for one in self.scripts)
            html = gradio.HTML(js_on_load=script, apply_default_css=False)
            quiet = {"show_progress": "hidden", "api_visibility": "private"}
            blocks.load(opened, outputs=html, **quiet)
            # One at a time: what a person does is worked out from what the log holds by then.
            html.submit(acted, outputs=html, trigger_mode="multiple", concurrency_limit=1, **quiet)
        return blocks

    def shown_to(self, named: str | None) -> str:
        if not named:
            return start_page(self.title, self.people.names)
        try:
            return self.opened(self.people.admitted(named))
        except EchoError as error:
            return start_page(self.title, self.people.names, str(error))


def look(css: Traversable) -> dict[str, Any]:
    import gradio

    fonts = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"]
    theme = gradio.themes.Base(font=fonts, font_mono=fonts)
    return {"css": css.read_text("utf-8"), "theme": theme}


def start_page(title: str, names: tuple[str, ...], problem: str = "") -> str:
    said = f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""
    choices = "".join(
        f'<button type="button" data-name="{escape(name)}">{escape(name)}</button>'
        for name in names
    )
    typed = (
        '<form class="name"><input name="person" maxlength="40" autocomplete="off" '
        'autocapitalize="off" spellcheck="false" aria-label="Pseudonym" required>'
        '<button type="submit">Start</button></form>'
    )
    about = "Choose yours." if names else "Use the same one whenever you come back; not your name."
    return (
        f'<div class="start"><h1>{escape(title)}</h1><p>What is your pseudonym? '
        f'{about}</p>{said}<div class="names">{choices or typed}</div></div>'
    )


def answer_of(action: Mapping[str, Any]) -> int:
    """Number of the request that a page waits for; 0 for none that can be read."""
    number = action.get("answer")
    return number if type(number) is int else 0


ROUTE = "/image/"
LONGEST_SIDE = 2048


@dataclass(frozen=True)
class ShownImages:
    """Some images of a run, each under a name that nobody can guess."""

    images: ImageStore
    secret: bytes = field(repr=False)
    digests: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, images: ImageStore, digests: Iterable[str]) -> Self:
        """Names images anew: the names are others whenever an app is started."""
        secret = secrets.token_bytes(32)
        return cls(images, secret, {_name(secret, digest): digest for digest in digests})

    def address(self, digest: str) -> str:
        return ROUTE + _name(self.secret, digest)

    def png(self, name: str) -> bytes | None:
        digest = self.digests.get(name)
        return None if digest is None else packed(self.images.open(digest))


def packed(data: bytes) -> bytes:
    """An image packed anew, without whatever else its file held."""
    image = load_rgb(data)
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    sink = io.BytesIO()
    image.save(sink, "PNG", compress_level=1)
    return sink.getvalue()


def _name(secret: bytes, digest: str) -> str:
    return hmac.new(secret, digest.encode(), hashlib.sha256).hexdigest()[:32]


EXTRA = "apps"
# Even markup that slipped into a page could fetch nothing from elsewhere. Gradio's own page needs
# scripts that stand in it, and builds functions from its templates.
POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-ancestors 'self'; "
    "form-action 'self'; base-uri 'self'; object-src 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
LAST_WORDS_S = 2


@dataclass(frozen=True)
class Place:
    host: str = "127.0.0.1"
    port: int = 7860


def check_installed(part: str) -> None:
    """Says what to install before anything is read."""
    if find_spec("gradio") is None:
        raise MissingExtraError(part, EXTRA)


def serve(
    blocks: Callable[[], gradio.Blocks],
    images: ShownImages,
    people: AppUsers,
    place: Place,
    ready: Callable[[str], None],
    look: Callable[[], Mapping[str, Any]],
) -> None:
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when gradio is imported
    import gradio
    import uvicorn

    with listening(place) as taken:
        host, port = taken.getsockname()[:2]
        app = gradio.mount_gradio_app(
            application(images, place.host),
            blocks(),
            path="/",
            server_name=place.host,
            server_port=port,
            auth=list((people.passwords or {}).items()) or None,
            footer_links=[],
            run_history=False,
            ssr_mode=False,
            show_error=True,
            max_file_size=1,
            app_kwargs={"docs_url": None, "redoc_url": None, "openapi_url": None},
            **look(),
        )
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
        config = uvicorn.Config(
            app, log_level="warning", timeout_graceful_shutdown=LAST_WORDS_S, server_header=False
        )
        uvicorn.Server(config).run(sockets=[taken])


def application(images: ShownImages, host: str) -> fastapi.FastAPI:
    import fastapi
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    app = fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    if is_loopback(host) and ":" not in host:
        # A website whose name was pointed at this machine is not asked in by its visitors.
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=["localhost", "127.0.0.1", host])

    app.add_middleware(_Limited)

    def image(name: str) -> fastapi.Response:
        try:
            data = images.png(name)
        except ImageError:
            data = None
        if data is None:
            return fastapi.Response("no such image", 404, media_type="text/plain")
        kept = {"Cache-Control": "private, max-age=86400"}
        return fastapi.Response(data, media_type="image/png", headers=kept)

    # Annotations that are text would be looked up among this module's names.
    image.__annotations__ = {"name": str}
    app.add_api_route(ROUTE + "{name}", image)
    return app


class _Limited:
    """Adds `HEADERS` to each answer, and lets streams of events pass as they come."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def limited(message: Any) -> None:
            if message["type"] == "http.response.start":
                more = [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *more]}
            await send(message)

        await self.app(scope, receive, limited)


def listening(place: Place) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        return socket.create_server((place.host, place.port), family=family)
    except (OSError, OverflowError) as error:
        raise RunError(
            f"cannot listen on {place.host!r}, port {place.port} ({error}): choose another with "
            "--port or --host"
        ) from None
