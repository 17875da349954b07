"""Rows of a dataset on the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.errors import DataError

if TYPE_CHECKING:
    from pipeline.tables.shapes.rows import Row


@dataclass(frozen=True, slots=True)
class HubSource:
    """A split of a dataset on the Hugging Face hub."""

    dataset: str
    config: str | None
    split: str


def read_hub(source: HubSource) -> Iterator[Row]:
    """Rows of a dataset on the Hugging Face hub; needs the extra ``hf`` and, once, the network.

    Raises:
        DataError: the extra is not installed, or the dataset cannot be had.
    """
    from pipeline.tables.shapes.rows import Row  # not above: collection starts without polars

    try:
        import datasets
    except ImportError:
        raise DataError(
            f"reading {source.dataset} from the Hugging Face hub needs the extra hf: pip install 'auxeval[hf]';"
            " or give benchmark.path, a local file"
        ) from None
    try:
        rows = datasets.load_dataset(source.dataset, source.config, split=source.split)
    except Exception as error:  # the hub client raises whatever its transport raises
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(f"dataset {source.dataset} cannot be read from the Hugging Face hub: {reason}") from None
    for number, values in enumerate(rows, start=1):
        yield Row(f"row {number}", values)
