"""JSON from elsewhere: what would overflow a stack, or a number, is an error like any other."""

from __future__ import annotations

import json
import re
from typing import Any

_MOST_DIGITS = 300
_LONG = re.compile(rf"[0-9]{{{_MOST_DIGITS + 1}}}")


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Brackets 50,000 deep, and whole numbers of 5,000 digits, once ended a command with an internal error at whichever
    door had only thought of broken JSON.

    Raises:
        ValueError: it is not JSON (``json.JSONDecodeError``), is nested too deeply, or holds a whole number of more
            than 300 digits.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        return json.loads(text, parse_int=_integer if _LONG.search(text) else None)
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", "", 0) from None


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise json.JSONDecodeError(f"a whole number of {len(digits)} digits", "", 0)
    return int(digits)
