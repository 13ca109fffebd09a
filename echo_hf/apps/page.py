"""The page of an app: who may open it, how it is served, and images under unguessable names."""

from __future__ import annotations

import hashlib
import hmac
import io
import ipaddress
import os
import re
import secrets
import socket
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from PIL import Image

from echo_hf.errors import EchoError, ImageError, MissingExtraError, RunError
from echo_hf.images.loader import load_rgb
from echo_hf.images.store import ImageStore

if TYPE_CHECKING:
    import fastapi
    import gradio
    import jinja2

EXTRA = "apps"
PASSWORDS_VARIABLE = "ECHO_HF_PEOPLE"
AUTH = "auth"
PSEUDONYM = re.compile(r"[\w-]{1,40}")
MIN_PASSWORD = 8
IMAGE_ROUTE = "/image/"
MAX_SIDE_PIXELS = 2048
ASSETS = files(__package__ or "").joinpath("assets")
FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif")
# Even markup that slipped into a page could fetch nothing from elsewhere. Gradio's own page needs
# scripts that stand in it, and builds functions from its templates.
CONTENT_SECURITY_POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-ancestors 'self'; "
    "form-action 'self'; base-uri 'self'; object-src 'none'"
)
SECURITY_HEADERS = [
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]
GRACE_SECONDS = 2
NO_API_DOCS: Mapping[str, Any] = {"docs_url": None, "redoc_url": None, "openapi_url": None}
ImageAddress = Callable[[str], str]


@dataclass(frozen=True)
class AppUsers:
    names: tuple[str, ...] = ()  # pseudonyms; none where everybody may choose one
    passwords: Mapping[str, str] | None = None  # by pseudonym; none where nobody has to sign in

    def check_admitted(self, name: str) -> str:
        chosen = normalize_pseudonym(name)
        if self.names and chosen not in self.names:
            raise RunError(f"{chosen!r} is not on the list: choose one of {', '.join(self.names)}")
        return chosen


def normalize_pseudonym(name: str) -> str:
    """Return a pseudonym in its normal form, so that a capital letter makes no second person."""
    normalized = unicodedata.normalize("NFKC", name).strip().lower()
    if not PSEUDONYM.fullmatch(normalized):
        raise RunError(
            f"{name[:60]!r} is not a pseudonym: expected 1 to 40 letters, digits, - or _, and "
            "not the name of a person"
        )
    return normalized


def read_users(people: Iterable[str]) -> AppUsers:
    """Read from the command line who may use an app."""
    names = tuple(people)
    if AUTH not in names:
        return AppUsers(tuple(dict.fromkeys(map(normalize_pseudonym, names))))
    if len(names) > 1:
        raise RunError(f"--people {AUTH} stands alone: the names are in {PASSWORDS_VARIABLE}")
    pairs = [pair.partition(":") for pair in os.environ.get(PASSWORDS_VARIABLE, "").split()]
    passwords = {normalize_pseudonym(name): password for name, _, password in pairs}
    short = [name for name, password in passwords.items() if len(password) < MIN_PASSWORD]
    if not passwords or len(passwords) < len(pairs) or short:
        # A password itself is never shown.
        raise RunError(
            f"{PASSWORDS_VARIABLE} names {len(pairs)} people, {len(passwords)} of them distinct, "
            f"{len(short)} with a short password: expected 'ada:PASSWORD ben:PASSWORD' in the "
            f"environment, and passwords of {MIN_PASSWORD} characters or more"
        )
    return AppUsers(tuple(passwords), passwords)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_reachable(host: str, people: AppUsers, *, allow_anyone: bool) -> None:
    """Refuse to serve an app to other machines without passwords, unless that is asked for."""
    if not is_loopback(host) and not people.passwords and not allow_anyone:
        raise RunError(
            f"{host!r} can be reached from other machines: give people passwords "
            f"({PASSWORDS_VARIABLE}='ada:PASSWORD ben:PASSWORD' and --people {AUTH}), or say "
            "--anyone"
        )


@cache
def _load_templates() -> jinja2.Environment:
    import jinja2

    def read_template(name: str) -> str:
        # Without what stands between tags: some places on a page keep spaces.
        return "".join(map(str.strip, ASSETS.joinpath(name).read_text("utf-8").splitlines()))

    loader = jinja2.FunctionLoader(read_template)
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)


def render_page(template: str, **values: Any) -> str:
    """Render a template of `assets` as HTML; every value is escaped."""
    return _load_templates().get_template(template).render(values)


@dataclass(frozen=True)
class AppPage:
    """The title, scripts, styles and callbacks of one app.

    `open_page` gives a person's page, `handle_action` does what one asks for and gives the page
    with the number of the request that it answers.
    """

    title: str
    scripts: tuple[str, ...]
    styles: str
    open_page: Callable[[str], str]
    handle_action: Callable[[str, Mapping[str, Any], int], str]

    def build_blocks(self, people: AppUsers) -> gradio.Blocks:
        import gradio

        def load_page(request: gradio.Request) -> str:
            return self.render_for(people, request.username or request.query_params.get("person"))

        def submit_action(event: gradio.EventData, request: gradio.Request) -> str:
            action: Mapping[str, Any] = event._data if isinstance(event._data, Mapping) else {}
            answer = action.get("answer")
            try:
                # Who signed in is who they are, whatever the page says.
                person = people.check_admitted(str(request.username or action.get("person")))
                return self.handle_action(person, action, answer if type(answer) is int else 0)
            except (EchoError, OSError) as error:  # a full disk is no reason to end
                raise gradio.Error(str(error), print_exception=False) from None

        # Annotations that are text would be looked up among this module's names.
        load_page.__annotations__ = {"request": gradio.Request}
        submit_action.__annotations__ = {"event": gradio.EventData, "request": gradio.Request}
        with gradio.Blocks(title=self.title, analytics_enabled=False, fill_width=True) as blocks:
            script = "\n".join(map(self._read_asset, self.scripts))
            html = gradio.HTML(js_on_load=script, apply_default_css=False)
            hidden = {"show_progress": "hidden", "api_visibility": "private"}
            blocks.load(load_page, outputs=html, **hidden)
            # One at a time: what a person does is worked out from what the log holds by then.
            html.submit(
                submit_action, outputs=html, trigger_mode="multiple", concurrency_limit=1, **hidden
            )
        return blocks

    def render_for(self, people: AppUsers, name: str | None) -> str:
        problem = ""
        try:
            if name:
                return self.open_page(people.check_admitted(name))
        except EchoError as error:
            problem = str(error)
        return render_page("start.jinja", title=self.title, names=people.names, problem=problem)

    def read_styles(self) -> str:
        return self._read_asset(self.styles)

    def _read_asset(self, name: str) -> str:
        return ASSETS.joinpath(name).read_text("utf-8")


@dataclass(frozen=True)
class ServedImages:
    """The images that an app serves, under unguessable names that change at each start."""

    images: ImageStore
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    digests: dict[str, str] = field(default_factory=dict, repr=False)

    def admit(self, digests: Iterable[str]) -> None:
        self.digests.update((self._hash_name(digest), digest) for digest in digests)

    def get_address(self, digest: str) -> str:
        return IMAGE_ROUTE + self._hash_name(digest)

    def encode_png(self, name: str) -> bytes | None:
        digest = self.digests.get(name)
        return None if digest is None else encode_as_png(self.images.open(digest))

    def _hash_name(self, digest: str) -> str:
        return hmac.new(self.secret, digest.encode(), hashlib.sha256).hexdigest()[:32]


def encode_as_png(data: bytes) -> bytes:
    """Encode an image as a PNG without any other content of its file."""
    image = load_rgb(data)
    image.thumbnail((MAX_SIDE_PIXELS, MAX_SIDE_PIXELS), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


class ServerAddress(NamedTuple):
    host: str = "127.0.0.1"
    port: int = 7860


def check_apps_installed(part: str) -> None:
    """Raise an error that says what to install where gradio is missing."""
    if find_spec("gradio") is None:
        raise MissingExtraError(part, EXTRA)


def serve(
    page: AppPage,
    images: ServedImages,
    *,
    server: ServerAddress,
    people: Iterable[str],
    allow_anyone: bool,
    on_ready: Callable[[str], None],
) -> None:
    users = read_users(people)
    check_reachable(server.host, users, allow_anyone=allow_anyone)
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when gradio is imported
    import gradio
    import uvicorn

    with open_socket(server) as server_socket:
        host, port = server_socket.getsockname()[:2]
        app = gradio.mount_gradio_app(
            make_application(images, server.host),
            page.build_blocks(users),
            path="/",
            server_name=server.host,
            server_port=port,
            auth=list((users.passwords or {}).items()) or None,
            footer_links=[],
            run_history=False,
            ssr_mode=False,
            show_error=True,
            max_file_size=1,
            app_kwargs=NO_API_DOCS,
            css=page.read_styles(),
            theme=gradio.themes.Base(font=FONTS, font_mono=FONTS),
        )
        on_ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
        config = uvicorn.Config(
            app, log_level="warning", timeout_graceful_shutdown=GRACE_SECONDS, server_header=False
        )
        uvicorn.Server(config).run(sockets=[server_socket])


def make_application(images: ServedImages, host: str) -> fastapi.FastAPI:
    import fastapi
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    app = fastapi.FastAPI(**NO_API_DOCS)
    if is_loopback(host) and ":" not in host:
        # A website whose name was pointed at this machine is not asked in by its visitors.
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=["localhost", "127.0.0.1", host])
    app.add_middleware(_HeadersMiddleware)

    def serve_image(name: str) -> fastapi.Response:
        data = None
        with suppress(ImageError):
            data = images.encode_png(name)
        if data is None:
            return fastapi.Response("no such image", 404, media_type="text/plain")
        cache_headers = {"Cache-Control": "private, max-age=86400"}
        return fastapi.Response(data, media_type="image/png", headers=cache_headers)

    # Annotations that are text would be looked up among this module's names.
    serve_image.__annotations__ = {"name": str}
    app.add_api_route(IMAGE_ROUTE + "{name}", serve_image)
    return app


class _HeadersMiddleware:
    """Adds `SECURITY_HEADERS` to each response, without buffering streams."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *SECURITY_HEADERS]}
            await send(message)

        await self.app(scope, receive, send_with_headers)


def open_socket(server: ServerAddress) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
        return socket.create_server((server.host, server.port), family=family)
    except (OSError, OverflowError) as error:
        raise RunError(
            f"cannot listen on {server.host!r}, port {server.port} ({error}): choose another with "
            "--port or --host"
        ) from None
