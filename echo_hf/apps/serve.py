"""Serve an app's page and its pictures from this machine, and let the page ask nobody else."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from echo_hf.apps.people import People, is_loopback
from echo_hf.apps.shown_pictures import ROUTE, ShownPictures
from echo_hf.errors import MissingExtraError, PictureError, RunError

if TYPE_CHECKING:
    import fastapi
    import gradio

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
    """Where an app is reached.

    Attributes:
        host: Address that it listens on.
        port: Its port; 0 for any that is free.
    """

    host: str = "127.0.0.1"
    port: int = 7860


def check_installed(part: str) -> None:
    """Says what to install before anything is read.

    Args:
        part: What needs it.

    Raises:
        MissingExtraError: Gradio is not here.
    """
    if find_spec("gradio") is None:
        raise MissingExtraError(part, EXTRA)


def serve(
    blocks: Callable[[], gradio.Blocks],
    pictures: ShownPictures,
    people: People,
    place: Place,
    ready: Callable[[str], None],
    look: Callable[[], Mapping[str, Any]],
) -> None:
    """Serves a page until it is stopped.

    Args:
        blocks: Makes the page.
        pictures: The pictures that it may show.
        people: Who may work; those with passwords have to sign in.
        place: Where it listens.
        ready: Told the address as soon as it can be opened.
        look: Gives options of the page, as `gradio.mount_gradio_app` takes them: `css`, ...

    Raises:
        RunError: The port cannot be had.
    """
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when gradio is imported
    import gradio
    import uvicorn

    with listening(place) as taken:
        host, port = taken.getsockname()[:2]
        app = gradio.mount_gradio_app(
            application(pictures, place.host),
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


def application(pictures: ShownPictures, host: str) -> fastapi.FastAPI:
    """What serves pictures, and puts limits on the page that is mounted in it.

    Args:
        pictures: The pictures that may be shown.
        host: Address that it listens on.

    Returns:
        An application without a page.
    """
    import fastapi
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    app = fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    if is_loopback(host) and ":" not in host:
        # A website whose name was pointed at this machine is not asked in by its visitors.
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=["localhost", "127.0.0.1", host])

    app.add_middleware(_Limited)

    def picture(name: str) -> fastapi.Response:
        try:
            data = pictures.png(name)
        except PictureError:
            data = None
        if data is None:
            return fastapi.Response("no such picture", 404, media_type="text/plain")
        kept = {"Cache-Control": "private, max-age=86400"}
        return fastapi.Response(data, media_type="image/png", headers=kept)

    # Annotations that are text would be looked up among this module's names.
    picture.__annotations__ = {"name": str}
    app.add_api_route(ROUTE + "{name}", picture)
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
    """Takes a port.

    Args:
        place: Where.

    Returns:
        A socket that listens there.

    Raises:
        RunError: The port cannot be had.
    """
    try:
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        return socket.create_server((place.host, place.port), family=family)
    except (OSError, OverflowError) as error:
        raise RunError(
            f"cannot listen on {place.host!r}, port {place.port} ({error}): choose another with "
            "--port or --host"
        ) from None
