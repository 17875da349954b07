"""Text embeddings: the interface, the small model whose weights ship in a package, and vectors fetched elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import InputError

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """The model, as written in a report."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(n, d) float32, row i for text i."""
        ...


class StaticEmbedder:
    """WordLlama's 256 numbers per token (l2_supercat), averaged over a text and scaled to unit length.

    16 MB, NumPy only, no network.

    The package ``wordllama`` (extra ``embed``, MIT) carries the weights and the tokenizer; its files are read
    directly, so nothing is ever looked for in a hub.

    Raises:
        InputError: the extra is not installed, or its files are not where they should be.
    """

    name = "wordllama/l2_supercat_256"

    def __init__(self) -> None:
        folder = _package_folder("wordllama")
        weights = folder / "weights" / "l2_supercat_256.safetensors"
        tokens = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
        for file in (weights, tokens):
            if not file.is_file():
                raise InputError(f"the installed wordllama has no {file.name}; install 'auxeval[embed]' again")
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        (table,) = load_file(weights).values()
        self._table: Vectors = np.asarray(table, dtype=np.float32)
        self._tokenizer: Any = Tokenizer.from_file(str(tokens))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Mean token vector of each text at unit length, (n, 256); zeros for a text without tokens."""
        result = np.zeros((len(texts), self._table.shape[1]), dtype=np.float32)
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        for row, encoding in enumerate(self._tokenizer.encode_batch(clean, add_special_tokens=False)):
            if encoding.ids:
                result[row] = self._table[np.asarray(encoding.ids)].mean(axis=0)
        length = np.linalg.norm(result, axis=1, keepdims=True)
        return np.asarray(result / np.where(length > 0.0, length, 1.0), dtype=np.float32)


class FetchedEmbedder:
    """Vectors that were fetched beforehand, for instance from an embedding model behind the gateway.

    Args:
        name: the model.
        vectors: :func:`text_digest` of a text to its vector; all of one length.
    """

    def __init__(self, name: str, vectors: Mapping[str, Sequence[float] | Vectors]) -> None:
        self.name = name
        self._vectors = vectors
        widths = {len(vector) for vector in vectors.values()}
        if len(widths) > 1:
            raise InputError(f"embedding model {name} returned vectors of different lengths: {sorted(widths)}")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The stored vectors; InputError for a text that was never fetched."""
        digests = [text_digest(text) for text in texts]
        absent = [text for text, digest in zip(texts, digests, strict=True) if digest not in self._vectors]
        if absent:
            raise InputError(
                f"embedding model {self.name}: {len(absent)} texts have no vector, first {absent[0][:60]!r}"
            )
        return np.asarray([self._vectors[digest] for digest in digests], dtype=np.float32)


def text_digest(text: str) -> str:
    """SHA-256 of a text, lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _package_folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"text features need {package}: pip install 'auxeval[embed]'")
    return Path(next(iter(spec.submodule_search_locations)))
