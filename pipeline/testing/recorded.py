"""Recorded runs as the answers of a test: a replay, or a gateway that knows nothing but a cassette."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import ReplayMissError
from pipeline.models.types import CallLabel, Failed, Message, Outcome, ReplySchema

if TYPE_CHECKING:
    from pipeline.models.gateway import Gateway
    from pipeline.runs.interface import RunResult


class RecordedGateway:
    """Asks a gateway that answers from recordings alone, and raises where there is none.

    Args:
        gateway: an offline gateway.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def ask(
        self,
        model: str,
        messages: Sequence[Message],
        *,
        label: CallLabel,
        draw: int = 0,
        params: Mapping[str, Any] | None = None,
        schema: ReplySchema | None = None,
    ) -> Outcome:
        """One recorded call; see :meth:`pipeline.models.types.Asker.ask`.

        Raises:
            ReplayMissError: this request was not recorded; names stage, item, model and the prompt's end.
        """
        outcome = await self._gateway.ask(model, messages, label=label, draw=draw, params=params, schema=schema)
        if isinstance(outcome, Failed) and outcome.kind == "not_recorded":
            prompt = " ".join(messages[-1]["content"].split())[-120:] if messages else ""
            raise ReplayMissError(
                f"not recorded: stage {label.stage}, item {label.item}, model {model}, draw {draw}: …{prompt}"
            )
        return outcome


class CassettePlayer:
    """Plays cassettes (``auxeval export RUN CASSETTE``) without network.

    Args:
        folder: where replayed runs go.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def replay(self, path: str | Path) -> RunResult:
        """The recorded run again: its tables, estimates and report.

        Raises:
            ReplayMissError: a call was not recorded; names stage, item, model and how many are missing.
            InputError: the file is no cassette, or is damaged.
        """
        from pipeline.runs.interface import replay

        return replay(path, out=self._folder / f"{Path(path).name.partition('.')[0]}-replay")

    @contextlib.asynccontextmanager
    async def gateway(self, path: str | Path) -> AsyncIterator[RecordedGateway]:
        """A gateway with the cassette's model entries, which answers what was recorded and nothing else.

        Raises:
            InputError: the file is no cassette, or is damaged.
        """
        from pipeline.models.budget import Budget
        from pipeline.models.cache import ReplyCache
        from pipeline.models.gateway import Gateway
        from pipeline.runs.cassettes import open_cassette
        from pipeline.runs.setup import prepare

        recorded = open_cassette(Path(path), self._folder / "cassette")
        prepared = prepare(recorded.directory.config(), recorded.directory, need_keys=False)
        with ReplyCache(recorded.cache_dir) as cache:
            gateway = Gateway(
                prepared.specs,
                cache=cache,
                budget=Budget(),
                record=lambda record: None,
                offline=True,
                recorded_failures=recorded.failures,
                negotiated=recorded.directory.manifest().get("negotiated") or {},
            )
            async with gateway:
                yield RecordedGateway(gateway)
