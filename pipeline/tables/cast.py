"""Who gives signals in a run, and what the columns of its signals table are called."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import InputError

DIRECT = "direct "
"""Prefix of what a comparison with another model's response is called; no anchor can have such a name."""
NO_SIGNALS = frozenset(
    {"item_id", "target", "y", "labeled", "profile", "inclusion", "outcome", "label_round", "label_stratum", "cluster"}
)
"""Columns of a signals table that are no signals."""


@dataclass(frozen=True, slots=True)
class Cast:
    """Who gives signals in a run, and of what: what its signals table is assembled from.

    Attributes:
        judges: entries of the judges.
        anchors: names of the anchors that targets are compared with.
        criteria: what judges were asked in the place of whether an answer is right; may be empty.
        compared: targets that the judges compared directly with each other; may be empty.
        own: names of the user's own numbers.
        scattered: whether a response has several scores of one thing, so that their disagreement is a signal.
        weighed: signals made of token probabilities.
        rated: whether outcomes are people's ratings, so that an answer without one is not labeled.
    """

    judges: tuple[str, ...] = ("judge",)
    anchors: tuple[str, ...] = ("weak", "medium", "strong")
    criteria: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    scattered: bool = True
    weighed: tuple[str, ...] = ()
    rated: bool = False

    def judge_columns(self) -> dict[str, tuple[str | None, str | None]]:
        """Signal → (criterion, judge) that it is the mean score of; None stands for all there are.

        The first criterion is ``judge``, as the question whether an answer is right is; each judge of a panel has a
        column beside the panel's mean.
        """
        columns: dict[str, tuple[str | None, str | None]] = {}
        for k, criterion in enumerate(self.criteria or (None,)):
            name = "judge" if k == 0 else f"judge_{criterion}"
            columns[name] = (criterion, None)
            if len(self.judges) > 1:
                columns |= {f"{name}_{judge}": (criterion, judge) for judge in self.judges}
        return columns if self.judges else {}

    def direct_columns(self) -> dict[str, str]:
        """Signal → the target that every other is compared with in it."""
        if len(self.compared) == 2:
            return {"preference": ""}  # the other one
        return {f"preference_{name}": name for name in self.compared}

    def signal_names(self) -> tuple[str, ...]:
        """The label-free signals of a run, in the paper's order, then the user's own.

        Raises:
            InputError: two of them would have one name.
        """
        pairs = tuple(f"pair_{name}" for name in self.anchors) if self.judges else ()
        scatter = ("disagreement",) if self.judges and self.scattered else ()
        names = (
            *self.judge_columns(),
            *self.direct_columns(),
            *pairs,
            "confidence",
            *scatter,
            *self.weighed,
            *self.own,
        )
        for name in names:
            if names.count(name) > 1 or name in NO_SIGNALS:
                raise InputError(f"two columns of the signals table would be called {name!r}; rename one of them")
        return names


PAPER_CAST = Cast()
"""The cast of the LACE paper."""
