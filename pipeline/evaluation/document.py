"""The estimates of a run or table as one document: estimates.json, and what ``--json`` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import InputError
from pipeline.estimators.results import Estimate, Profile

__all__ = ["SCHEMA", "BestOfNEstimate", "EstimateSet", "Gap", "Warned", "read_estimates"]

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Gap:
    """The paired difference a − b of two targets."""

    a: str
    b: str
    method: str
    estimate: Estimate | Profile

    def to_dict(self) -> dict[str, Any]:
        """As in estimates.json."""
        return {"a": self.a, "b": self.b, "method": self.method, "estimate": self.estimate.to_dict()}


@dataclass(frozen=True, slots=True)
class BestOfNEstimate:
    """The value of one policy: the best of N candidates by the mean of J scores."""

    target: str
    n: int
    j: int
    estimate: Estimate
    measure: str = "score"

    def to_dict(self) -> dict[str, Any]:
        """As in estimates.json."""
        return {
            "target": self.target,
            "n": self.n,
            "j": self.j,
            "measure": self.measure,
            "estimate": self.estimate.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Warned:
    """Something the reader of the numbers must know."""

    code: str
    message: str

    def to_dict(self) -> dict[str, str]:
        """As in estimates.json."""
        return {"code": self.code, "message": self.message}


@dataclass(frozen=True, slots=True)
class EstimateSet(Mapping[str, Mapping[str, Estimate | Profile]]):
    """Every estimate of a run: target → method → estimate, and what is about several targets.

    ``estimates["gpt"]["one_step"]`` is an :class:`Estimate`, ``estimates["gpt"]["lace_profile"]`` a :class:`Profile`.
    """

    targets: Mapping[str, Mapping[str, Estimate | Profile]]
    gaps: tuple[Gap, ...] = ()
    best_of_n: tuple[BestOfNEstimate, ...] = ()
    warnings: tuple[Warned, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, target: str) -> Mapping[str, Estimate | Profile]:
        return self.targets[target]

    def __iter__(self) -> Iterator[str]:
        return iter(self.targets)

    def __len__(self) -> int:
        return len(self.targets)

    def to_dict(self) -> dict[str, Any]:
        """The document as strict JSON values."""
        return {
            "schema": SCHEMA,
            "targets": {
                name: {method: estimate.to_dict() for method, estimate in methods.items()}
                for name, methods in self.targets.items()
            },
            "gaps": [gap.to_dict() for gap in self.gaps],
            "best_of_n": [entry.to_dict() for entry in self.best_of_n],
            "warnings": [warning.to_dict() for warning in self.warnings],
            **dict(self.extra),
        }

    def to_json(self) -> str:
        """The document as indented strict JSON, ending with a newline."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _either(entry: Mapping[str, Any]) -> Estimate | Profile:
    return Profile.from_dict(entry) if "at" in entry else Estimate.from_dict(entry)


_KNOWN = ("schema", "targets", "gaps", "best_of_n", "warnings")


def read_estimates(path: Path) -> EstimateSet:
    """The document of a finished run.

    Raises:
        InputError: it is missing, damaged, or of a newer schema.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] > SCHEMA:
            raise InputError(
                f"{path}: schema {data['schema']} is newer than this program reads ({SCHEMA}); upgrade auxeval"
            )
        return EstimateSet(
            targets={
                name: {method: _either(entry) for method, entry in methods.items()}
                for name, methods in data["targets"].items()
            },
            gaps=tuple(Gap(g["a"], g["b"], g["method"], _either(g["estimate"])) for g in data["gaps"]),
            best_of_n=tuple(
                BestOfNEstimate(
                    b["target"], b["n"], b["j"], Estimate.from_dict(b["estimate"]), b.get("measure", "score")
                )
                for b in data["best_of_n"]
            ),
            warnings=tuple(Warned(w["code"], w["message"]) for w in data["warnings"]),
            extra={name: value for name, value in data.items() if name not in _KNOWN},
        )
    except FileNotFoundError:
        raise InputError(f"{path}: no estimates yet; auxeval resume finishes the run") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: damaged ({type(error).__name__}); auxeval resume makes it again") from None
