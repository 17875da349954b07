"""Writes docs/reference/ from the code: `python docs/generate_reference.py` (a test holds the files to it)."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pipeline  # noqa: E402
import pipeline.estimators as estimators  # noqa: E402
from pipeline.config import config_json_schema  # noqa: E402

FOLDER = ROOT / "docs" / "reference"


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
    yield "| key | value | default |"
    yield "| --- | --- | --- |"
    for key, entry in schema.get("properties", {}).items():
        bounds = _bounds(entry)
        kind = _type_of(entry) + (f", {bounds}" if bounds else "")
        required = key in schema.get("required", [])
        default = "required" if required else _default(entry)
        yield f"| `{key}` | {kind} | {default} |"
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
    for name in estimators.__all__:
        lines += _entry(name, getattr(estimators, name))
    return "\n".join(lines).rstrip() + "\n"


PAGES = {"configuration.md": configuration, "python.md": python}


def main() -> None:
    """Write every page."""
    FOLDER.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
