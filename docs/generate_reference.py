"""Writes docs/reference/ from the code: `python docs/generate_reference.py` (a test holds the files to it)."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pipeline  # noqa: E402
import pipeline.estimators as estimators  # noqa: E402
from pipeline.cli.documents import DOCUMENTS, document_schema  # noqa: E402
from pipeline.config import config_json_schema  # noqa: E402
from pipeline.evaluation.features import Feature  # noqa: E402
from pipeline.evaluation.methods import METHODS  # noqa: E402
from pipeline.report.terms import glossary  # noqa: E402

FOLDER = ROOT / "docs" / "reference"
HOMES = {"matrix.md": ROOT / "docs" / "methods"}
"""Pages that stand elsewhere."""


def _type_of(entry: dict[str, Any]) -> str:
    if "$ref" in entry:
        return f"section {entry['$ref'].rsplit('/', 1)[-1]}"
    if "enum" in entry or "const" in entry:
        return " \\| ".join(f"`{value}`" for value in entry.get("enum", [entry.get("const")]))
    if "anyOf" in entry:
        return " or ".join(_type_of(option) for option in entry["anyOf"])
    if entry.get("type") == "array":
        return f"list of {_type_of(entry.get('items', {}))}"
    if entry.get("type") == "object" and isinstance(entry.get("additionalProperties"), dict):
        return f"mapping to {_type_of(entry['additionalProperties'])}"
    return str(entry.get("type", "any value"))


def _bounds(entry: dict[str, Any]) -> str:
    signs = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
    return ", ".join(f"{sign} {entry[name]:g}" for name, sign in signs if name in entry)


def _default(entry: dict[str, Any]) -> str:
    if "default" not in entry:
        return ""
    return "its own defaults" if "$ref" in entry else f"`{json.dumps(entry['default'], ensure_ascii=False)}`"


def _section(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"## {name}\n"
    yield f"{(schema.get('description') or '').strip()}\n"
    yield "| key | value | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for key, entry in schema.get("properties", {}).items():
        bounds = _bounds(entry)
        kind = _type_of(entry) + (f", {bounds}" if bounds else "")
        required = key in schema.get("required", [])
        default = "required" if required else _default(entry)
        meaning = " ".join(str(entry.get("description", "")).split()).replace("|", "\\|")
        yield f"| `{key}` | {kind} | {default} | {meaning} |"
    yield ""


def configuration() -> str:
    """The configuration reference."""
    schema = config_json_schema()
    lines = ["# Configuration\n", "Made by `python docs/generate_reference.py` from `pipeline/config.py`.\n"]
    lines.append("Unknown keys are errors. Relative paths are relative to the configuration file.\n")
    lines += _section("RunConfig (the top of the file)", schema)
    for name, section in schema.get("$defs", {}).items():
        lines += _section(name, section)
    return "\n".join(lines).rstrip() + "\n"


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"### `{name}`\n"
    try:
        signature = str(inspect.signature(value)).replace("pipeline.estimators.results.", "")
    except (TypeError, ValueError):
        signature = ""
    yield f"```python\n{name}{signature}\n```\n"
    yield f"```text\n{inspect.getdoc(value) or ''}\n```\n"


def python() -> str:
    """The Python reference."""
    lines = ["# Python\n", "Made by `python docs/generate_reference.py` from the docstrings.\n", "## `pipeline`\n"]
    for name in pipeline.__all__:
        lines += _entry(f"pipeline.{name}", getattr(pipeline, name))
    lines.append("## `pipeline.estimators`\n")
    for name in dir(estimators):
        lines += _entry(name, getattr(estimators, name))
    return "\n".join(lines).rstrip() + "\n"


JSON_INTRODUCTION = """\
# What `--json` prints

Made by `python docs/generate_reference.py` from `pipeline/cli/documents/`.

Every command takes `--json` and then prints one JSON document on stdout and nothing else there; progress, notes and
warnings go to stderr. `auxeval schema COMMAND` prints the JSON Schema of its document, `auxeval schema --json` those of
all commands.

* The JSON is strict: a number that is not finite, or not known, is `null`.
* On an error stdout stays empty, stderr holds one line that begins with `auxeval:`, and the exit code is 1 (internal
  error), 2 (the input is wrong), 3 (stopped, resumable; a second line is the resume command) or 130 (interrupted).
  `doctor` and `cache verify` print their document and exit with 2 where something is wrong.
* `schema` is the version of the shape. It grows when a field goes away or changes its meaning; fields may be added
  under the same number, so a reader should pass over those it does not know.
* `command` says which command made the document. The estimates are the same document as `estimates.json` of a run and
  have no such field; in a study it is the whole command line.
"""


def _document_names(command: str) -> list[str]:
    document = DOCUMENTS[command]
    return [shape.__name__ for shape in get_args(document) or (document,) if hasattr(shape, "__required_keys__")]


def _document_fields(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"## {name}\n"
    yield f"{schema['description']}\n"
    yield "| field | value | meaning |"
    yield "| --- | --- | --- |"
    for key, entry in schema["properties"].items():
        optional = "" if key in schema.get("required", ()) else ", may be absent"
        yield f"| `{key}` | {_type_of(entry)}{optional} | {entry['description']} |"
    yield ""


def json_documents() -> str:
    """The reference of what ``--json`` prints."""
    lines = [JSON_INTRODUCTION, "| command | document |", "| --- | --- |"]
    shapes: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    for command in DOCUMENTS:
        names, schema = _document_names(command), document_schema(command)
        lines.append(f"| `{command}` | {' or '.join(names) or 'a JSON Schema'} |")
        parts |= schema.pop("$defs", {})
        shapes |= {name: parts.get(name, schema) for name in names}
    lines.append("")
    for name, schema in {**shapes, **parts}.items():
        lines += _document_fields(name, schema)
    return "\n".join(lines).rstrip() + "\n"


def matrix() -> str:
    """Every method against every feature of the data."""
    lines = [
        "# Methods and data",
        "",
        "What each method does with what data can have: `✓` handled; `refused`: an error where the method was asked",
        "for by name, else it is left out; `left out`: no number, and every output says why. There is no silent",
        "fourth case: the table is generated from `pipeline/evaluation/methods.py`, and the suite walks it.",
        "",
        "| method | " + " | ".join(feature.value for feature in Feature) + " |",
        "| --- | " + " | ".join("---" for _ in Feature) + " |",
    ]
    for method in METHODS:
        cells = ["✓" if method.on(feature).how == "handled" else method.on(feature).how for feature in Feature]
        lines.append(f"| `{method.name}` | " + " | ".join(cells) + " |")
    lines += ["", "| method | what it is | needs | asked for as |", "| --- | --- | --- | --- |"]
    for method in METHODS:
        needs = ", ".join(need.name for need in method.needs) or "labels"
        lines.append(f"| `{method.name}` | {method.about} | {needs} | `{method.group}` |")
    lines += ["", "Why, and what to do instead:", ""]
    for method in METHODS:
        for feature, support in method.support.items():
            if support.how != "handled":
                lines.append(f"* `{method.name}`, {feature.value}: {support.reason}.")
    return "\n".join(lines) + "\n"


def words() -> str:
    """The glossary: the words of pages and tables."""
    return "\n".join(glossary()).rstrip() + "\n"


PAGES = {
    "configuration.md": configuration, "glossary.md": words, "json.md": json_documents, "matrix.md": matrix,
    "python.md": python,
}  # fmt: skip


def main() -> None:
    """Write every page."""
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (HOMES.get(name, FOLDER) / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
