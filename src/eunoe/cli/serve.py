"""The command that starts the server."""

from typing import Annotated

import typer

from eunoe.cli.command import Call, command
from eunoe.display import output


@command("eunoe serve --port 8765", asks_llm=True)
def serve(
    call: Call,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")] = 8765,
    public_url: Annotated[str, typer.Option("--public-url", help="How others reach it; turns on OAuth.")] = "",
) -> None:
    """Serve this memory: HTTP, MCP and the inspector."""
    from eunoe.server.config import ServerConfig  # with it comes the whole server
    from eunoe.server.process import serve as run

    options = call.options
    config = ServerConfig(
        target=options.store,
        host=host,
        port=port,
        public_url=public_url,
        embedder=options.embedder or "auto",
        llm=options.llm or "auto",
        fast_llm=options.fast_llm,
    )
    run(config, _announce)


def _announce(url: str, token: str) -> None:
    output.say(f"Eunoe listens on {url}  (HTTP under /v1, MCP under /mcp; Ctrl-C stops it)")
    output.say(f"Open the inspector: {url}/#token={token}")
