"""The documents of the commands that move, list and check things."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from pipeline.cli.documents.shape import Document, Shape


class ReportDocument(Document):
    """Where the report is."""

    run: str
    """The run directory."""
    report: str
    """The HTML file."""


class RunEntry(Shape):
    """One run directory."""

    run_id: str
    """Its name."""
    path: str
    """Where it is."""
    state: str
    """running, stopped, done, damaged or unknown."""
    reason: str | None
    """Why it stopped."""
    created_at: str | None
    """UTC, ISO 8601."""
    finished_at: str | None
    """UTC, ISO 8601."""
    items: int | None
    """Items of its benchmark."""
    targets: list[str] | None
    """The models it evaluates."""
    cost_usd: float | None
    """What it has cost so far; null where unknown."""
    simulated: list[str] | None
    """Entries whose replies are simulated."""


class RunsListDocument(Document):
    """The runs under the runs directory, newest first."""

    runs: list[RunEntry]
    """The runs."""


class ExportDocument(Document):
    """A cassette that was written."""

    cassette: str
    """The file."""
    responses: int
    """Responses in it."""


class LookDocument(Document):
    """What files hold."""

    path: str
    """The files."""
    kind: str
    """What they are: a table, votes, a benchmark, or a tool's results."""
    rows: int | None
    """Their number; null where a tool's files were not read."""
    sample: list[dict[str, str]]
    """The first five rows."""
    roles: dict[str, str]
    """Role → column, as guessed."""
    odd: list[str]
    """What looks odd, one line each."""
    next: str
    """The command to run, as it is."""


class ImportDocument(Document):
    """A table made of another tool's files."""

    tool: str
    """Which tool wrote the files; `table` for a plain table."""
    table: str
    """The file that was written."""
    rows: int
    """Its rows."""
    items: int | None
    """Distinct items; null where the table has no such column."""
    models: int | None
    """Distinct models; null likewise."""
    tasks: int | None
    """Distinct tasks; null likewise."""
    columns: list[str]
    """All columns."""
    numbers: list[str]
    """Columns that may serve as gold or as signals."""
    notes: list[str]
    """What was skipped or changed, one line each."""
    next: str
    """A command that estimates from the table, runnable as it is; the first of `commands`."""
    commands: list[str]
    """One such command per task."""


class AuditDocument(Document):
    """An audit sheet that was written."""

    run: str
    """The run directory."""
    file: str
    """The sheet."""
    unread: int
    """Answers in it that could not be read."""
    sample: int
    """Read answers in it, drawn at random."""
    next: str
    """The command that takes the filled sheet back."""


class LabelsExportDocument(Document):
    """A label sheet that was written."""

    source: str
    """The run or table."""
    file: str
    """The sheet."""
    drawn: int
    """Items drawn."""
    design: Literal["uniform", "stratified"]
    """How they were drawn."""
    gold: Literal["answer", "score", "rating"]
    """What is to be filled in: the right answer, a score, or ratings by each criterion."""
    next: str
    """The command that imports the filled sheet."""
    files: NotRequired[list[str]]
    """Of ratings: a sheet for each rater."""
    responses: NotRequired[int]
    """Of ratings: distinct responses to rate."""
    twice: NotRequired[int]
    """Of ratings: responses that two people rate."""


class CacheStatsDocument(Document):
    """What the cache holds."""

    cache: str
    """Its directory."""
    entries: int
    """Replies."""
    bytes_on_disk: int
    """Bytes on disk."""
    damaged: int
    """Replies set aside as damaged."""
    by_model: dict[str, int]
    """Model string → replies."""
    cost_usd: float
    """What the replies cost whose price was known."""
    oldest: str | None
    """Time of the oldest reply, UTC."""
    newest: str | None
    """Time of the newest reply, UTC."""


class CacheVerifyDocument(Document):
    """Whether every reply of the cache can be read. Exit code 2 where one cannot."""

    entries: int
    """Replies read."""
    damaged: list[tuple[str, str]]
    """Key and what is wrong, of each damaged reply."""
    ok: bool
    """Whether none is damaged."""


class CacheRepairDocument(Document):
    """What could be saved of a damaged cache."""

    replies: int
    """Whole replies in the new database."""
    ledger_rows: int
    """Attempts of the ledger of money that could be read."""
    kept: str
    """Where the damaged files are."""


class CacheImportDocument(Document):
    """A cassette read into the cache."""

    added: int
    """Replies added."""
    known: int
    """Replies that were there already."""


class CachePruneDocument(Document):
    """Replies chosen for removal."""

    matched: int
    """Replies that the options choose."""
    removed: int
    """Of them removed: none without `--yes`."""


class InitDocument(Document):
    """A configuration that was written."""

    file: str | None
    """Where it is; null where none is needed."""
    key: str | None
    """The environment variable that its models need; null where they are simulated."""
    next: list[str]
    """Commands that check, price and run it."""


class SkillDocument(Document):
    """The page that says which command answers which question."""

    page: str
    """Markdown."""


class FindingEntry(Shape):
    """One thing about the items."""

    code: str
    """Stable name of the kind."""
    message: str
    """One sentence."""


class ConfigCheckDocument(Document):
    """A configuration that can be run."""

    config: dict[str, Any]
    """The configuration, fully resolved."""
    items: int
    """Items of its benchmark."""
    skipped: dict[str, int]
    """Why items of the file were skipped → how many."""
    findings: list[FindingEntry]
    """What to know of the items: duplicate questions, contradictory or oddly read golds, their language, ...."""


class CheckEntry(Shape):
    """One check."""

    check: str
    """What was looked at."""
    ok: bool
    """Whether it is fine."""
    detail: str
    """What was found, or how to mend it."""


class DoctorDocument(Document):
    """What a run needs. Exit code 2 where a check fails."""

    ok: bool
    """Whether every check is fine."""
    checks: list[CheckEntry]
    """The checks, in order."""
    proposals: dict[str, dict[str, float]]
    """Model entry → key → a value that suits its server better than the configuration's."""


class SchemaListDocument(Shape):
    """The JSON Schemas of all documents (`schema` without a command)."""

    schema: Literal[1]
    """Version of this shape."""
    command: Literal["schema"]
    """The command."""
    schemas: dict[str, Any]
    """Command → JSON Schema of its document."""
