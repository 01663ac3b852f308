"""The protocol around the tools: `waiton mcp` by standard input, or over HTTP for whoever has a token."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import Any

import jsonschema_rs
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from bot.domain.errors import WaitonError
from bot.mcp import reference
from bot.mcp.service import Caller, Service, agent_name
from bot.mcp.surface import INSTRUCTIONS, OFFERED, Offered
from bot.wiring import Product

Act = Callable[..., Awaitable[dict[str, Any]]]
WHO = "waiton.who"
"""In the scope of a request over HTTP: whose token it carries."""


class Speaker:
    """Answers what clients ask for. `email`: whom it acts for by standard input; over HTTP it is whose token a request
    carries."""

    def __init__(self, product: Product, service: Service, email: str | None) -> None:
        self._product = product
        self._email = email
        self._takes = {tool.name: jsonschema_rs.validator_for(tool.schema) for tool in OFFERED}
        self._acts: Mapping[str, Act] = {
            "run_program": service.run_program,
            "run_script": service.run_script,
            "check": service.check,
            "show_run": service.show_run,
            "wait_for_run": service.wait_for_run,
            "answer": service.answer,
            "edit": service.edit,
        }

    async def list_tools(self, context: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_told(tool) for tool in OFFERED])

    async def call_tool(self, context: Any, params: CallToolRequestParams) -> CallToolResult:
        given = dict(params.arguments or {})
        if params.name not in self._acts:
            return _result({"text": f"There is no tool `{params.name}`. Nothing has started."}, failed=True)
        wrong = next(iter(self._takes[params.name].iter_errors(given)), None)
        if wrong is not None:
            at = "/".join(str(step) for step in wrong.instance_path)
            said = f"{f'`{at}`: ' if at else ''}{wrong.message}. Nothing has started."
            return _result({"text": said}, failed=True)
        if "with" in given:
            given["with_"] = given.pop("with")
        try:
            return _result(await self._acts[params.name](_caller(context, self._email), **given))
        except WaitonError as fault:
            return _result({"text": f"{fault}. Nothing changed."}, failed=True)

    async def list_resources(self, context: Any, params: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(
            resources=[
                Resource(uri=page.uri, name=page.name, description=page.description, mime_type=page.kind)
                for page in reference.pages()
            ]
        )

    async def read_resource(self, context: Any, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri).rstrip("/")
        text = reference.read(uri, self._product.catalog)
        if text is None:
            raise MCPError(INVALID_PARAMS, f"there is no page `{uri}`; resources/list names them")
        kind = next((page.kind for page in reference.pages() if page.uri == uri), "text/markdown")
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=kind, text=text)])


def server(product: Product, service: Service, email: str | None) -> Server[Any]:
    speaker = Speaker(product, service, email)
    return Server(
        "waiton",
        version=version("waiton"),
        title="Waiton",
        instructions=INSTRUCTIONS,
        on_list_tools=speaker.list_tools,
        on_call_tool=speaker.call_tool,
        on_list_resources=speaker.list_resources,
        on_read_resource=speaker.read_resource,
    )


def _told(tool: Offered) -> Tool:
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.schema,
        annotations=ToolAnnotations(
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.reads or tool.repeats,
            open_world_hint=not tool.reads,
        ),
    )


def _result(told: dict[str, Any], *, failed: bool = False) -> CallToolResult:
    """What is told, as data and as the text of it: some clients show only that."""
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=told, is_error=failed)


def _caller(context: Any, email: str | None) -> Caller:
    """Which agent calls, and for whom."""
    scope: Mapping[str, Any] = getattr(context.request, "scope", {}) if context.request is not None else {}
    whom = scope.get(WHO) or email
    assert whom is not None
    said = context.session.client_params
    name = agent_name(said.client_info.name if said is not None and said.client_info is not None else None)
    session = dict(scope.get("headers", ())).get(b"mcp-session-id", b"").decode("latin-1")
    return Caller(email=whom, agent=name, session=f"{whom} {name} {session}")


async def by_standard_input(product: Product, service: Service, email: str) -> None:
    """Serves until the client closes its end."""
    from mcp.server.stdio import stdio_server

    _quiet()
    made = server(product, service, email)
    async with stdio_server() as (read, write):
        await made.run(read, write, made.create_initialization_options())


async def over_http(product: Product, service: Service, held: socket.socket, host: str, only: str | None) -> None:
    """Serves at `/mcp` of a socket that listens, until it is told to end. `only`: tokens of this person alone count."""
    import uvicorn

    from bot.server.serve import PlainServer, signals

    _quiet()
    app = server(product, service, None).streamable_http_app(host=host)
    config = uvicorn.Config(
        _Guard(app, product, only), log_config=None, log_level="warning", access_log=False,
        timeout_graceful_shutdown=2, server_header=False,
    )  # fmt: skip
    stop = asyncio.Event()
    with signals(stop):
        serving = PlainServer(config)
        task = asyncio.create_task(serving.serve([held]))
        await asyncio.wait({task, told := asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        serving.should_exit = True
        await task


def _quiet() -> None:
    logging.getLogger("mcp").setLevel(logging.CRITICAL)


class _Guard:
    """Lets in who has a token that stands, and notes whose it is."""

    def __init__(self, app: Any, product: Product, only: str | None) -> None:
        self._app = app
        self._product = product
        self._only = only

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            who = await self._whose(dict(scope["headers"]).get(b"authorization", b"").decode("latin-1"))
            if who is None:
                await _refuse(send)
                return
            scope = {**scope, WHO: who}
        await self._app(scope, receive, send)

    async def _whose(self, given: str) -> str | None:
        scheme, _, secret = given.partition(" ")
        if scheme.casefold() != "bearer" or not secret.strip():
            return None
        desk = self._product.desk
        email = await desk.bearer(secret.strip())
        person = (await desk.world()).person(email) if email else None
        if person is None or (self._only is not None and person.email != self._only):
            return None
        return person.email


async def _refuse(send: Any) -> None:
    body = b'{"text": "A bearer token is needed; `waiton token create EMAIL` makes one."}'
    head = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": head})
    await send({"type": "http.response.body", "body": body})
