"""Embeddings of a run's texts by a model behind the gateway, kept beside the run's tables."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from pipeline.config import RunConfig
from pipeline.errors import DataError
from pipeline.models.embeddings import EMBEDDING_PARAMS, read_vector
from pipeline.models.stopping import RunStopped
from pipeline.models.types import Answered, Asker, CallLabel
from pipeline.tables.embedding import Embedder, FetchedEmbedder, StaticEmbedder, text_digest
from pipeline.tables.schemas import TableSchema
from pipeline.tables.store import read_table, write_frame

EMBEDDED_CHARS = 20_000
"""Of longer texts only the beginning is embedded: embedding models take a few thousand tokens."""
EMBEDDINGS = TableSchema("embeddings", ("digest",), {"digest": pl.String(), "vector": pl.List(pl.Float32())})


def wanted_embedding(config: RunConfig) -> str | None:
    """The model entry that embeds the run's texts; None where none does."""
    if config.design.algorithm != "features" or "one_step" not in config.estimate:
        return None
    return config.design.embedding


def embeds_only(config: RunConfig, name: str) -> bool:
    """Whether a model entry embeds and plays no role, so that it is never asked for text."""
    return name == config.design.embedding and name not in config.roles.names()


async def fetch_embeddings(model: str, concurrency: int, texts: Iterable[str], asker: Asker, tables: Path) -> None:
    """Ask for the vector of every distinct text and write ``embeddings.parquet``.

    Args:
        model: name of the model entry.
        concurrency: calls at most in flight from here.
        texts: questions and chains.
        asker: the gateway.
        tables: folder of the run's tables.

    Raises:
        RunStopped: no further call may be made, or a text could not be embedded; what was asked stays cached.
    """
    vectors: dict[str, list[float]] = {}
    failures: list[str] = []
    waiting = iter(sorted(set(texts)))

    async def work() -> None:
        for text in waiting:
            digest = text_digest(text)
            outcome = await asker.ask(
                model,
                [{"role": "user", "content": text[:EMBEDDED_CHARS] or " "}],
                label=CallLabel("embedding", digest[:16], "embedding"),
                params=EMBEDDING_PARAMS,
            )
            if isinstance(outcome, Answered):
                vectors[digest] = read_vector(outcome.reply.text)
            else:
                failures.append(outcome.message)

    await asyncio.gather(*(work() for _ in range(max(1, concurrency))))
    if failures:
        raise RunStopped(f"{len(failures)} texts could not be embedded by {model}: {failures[0]}", "failure_limit")
    frame = pl.DataFrame({"digest": list(vectors), "vector": list(vectors.values())}, schema=dict(EMBEDDINGS.columns))
    write_frame(tables, EMBEDDINGS, frame)


def embedder_of(config: RunConfig, tables: Path) -> Embedder:
    """What turns this run's texts into vectors.

    Raises:
        InputError: the embed extra is missing, or the run has no vectors of its embedding model.
    """
    model = wanted_embedding(config)
    if model is None:
        return StaticEmbedder()
    frame = read_table(tables, EMBEDDINGS.name)
    if not frame.height:
        raise DataError(f"{tables}: no embeddings by {model}; auxeval resume asks for them")
    return FetchedEmbedder(model, dict(zip(frame["digest"], frame["vector"].to_list(), strict=True)))
