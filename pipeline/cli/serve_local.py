"""`auxeval serve-local`: a small model on this machine, for trying things without a key."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pipeline.models.local.server import LocalServer


@click.command("serve-local")
@click.argument("name", default="smollm2-135m")
@click.option(
    "--model-file",
    type=click.Path(path_type=Path),
    help="Weights that you have already; a copy is kept, so that runs need no network.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where to listen (0: any free port).")
@click.option("--slots", type=click.IntRange(1, 64), default=1, show_default=True, help="Requests answered at once.")
@click.option("--fetch-only", is_flag=True, help="Fetch and check the weights, and end.")
def command(name: str, model_file: Path | None, port: int, slots: int, fetch_only: bool) -> None:
    """Serve the model NAME on 127.0.0.1 until Ctrl-C; a run with `serve: NAME` in a model entry does it by itself."""
    from pipeline.models.local.server import LocalServer, check_can_serve, check_port
    from pipeline.models.local.weights import fetch_weights, keep_weights, local_model

    model = local_model(name)
    if not fetch_only:
        check_can_serve(model.bytes, what="serve-local")
        if port:
            check_port(port)
    weights = fetch_weights(model) if model_file is None else keep_weights(model, model_file)
    if fetch_only:
        click.echo(f"{model.title}: {weights}")
        return
    asyncio.run(_serve(LocalServer(model, weights, slots=slots, port=port)))


async def _serve(server: LocalServer) -> None:
    """Serve until a signal, or until the server has ended by itself.

    Raises:
        InputError: it does not start, or it has ended.
    """
    from pipeline.errors import InputError

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        url = await server.url()
        click.echo(f"{server.model.title} at {url}; Ctrl-C ends it. In a configuration:")
        click.echo(
            f"  {{model: openai/{server.model.name}, transport: direct, api_base: {url},"
            f" max_concurrency: {server.slots}}}"
        )
        ended, stopped = asyncio.ensure_future(server.wait()), asyncio.ensure_future(stop.wait())
        await asyncio.wait((ended, stopped), return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            raise InputError(f"the server of {server.model.name} has ended by itself (exit code {ended.result()})")
        ended.cancel()
    finally:
        await server.close()
