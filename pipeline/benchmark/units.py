"""Units after a number: which may touch it, and how compound ones add up."""

from __future__ import annotations

import re
from fractions import Fraction

_FAMILIES: dict[str, dict[str, Fraction]] = {
    "time": {
        "s": Fraction(1), "sec": Fraction(1), "secs": Fraction(1), "second": Fraction(1), "seconds": Fraction(1),
        "min": Fraction(60), "mins": Fraction(60), "minute": Fraction(60), "minutes": Fraction(60), "m": Fraction(60),
        "h": Fraction(3600), "hr": Fraction(3600), "hrs": Fraction(3600), "hour": Fraction(3600),
            "hours": Fraction(3600),
        "d": Fraction(86400), "day": Fraction(86400), "days": Fraction(86400), "week": Fraction(604800),
            "weeks": Fraction(604800),
    },
    "years": {"year": Fraction(12), "years": Fraction(12), "yr": Fraction(12), "yrs": Fraction(12),
        "month": Fraction(1), "months": Fraction(1)},
    "feet": {
        "in": Fraction(1), "inch": Fraction(1), "inches": Fraction(1), '"': Fraction(1), "ft": Fraction(12),
            "foot": Fraction(12),
        "feet": Fraction(12), "'": Fraction(12), "yd": Fraction(36), "yard": Fraction(36), "yards": Fraction(36),
            "mile": Fraction(63360), "miles": Fraction(63360),
    },
    "pounds": {"oz": Fraction(1), "ounce": Fraction(1), "ounces": Fraction(1), "lb": Fraction(16),
        "lbs": Fraction(16), "pound": Fraction(16), "pounds": Fraction(16)},
    "metres": {
        "mm": Fraction(1), "millimeters": Fraction(1), "cm": Fraction(10), "centimeters": Fraction(10),
            "centimetres": Fraction(10), "m": Fraction(1000), "meter": Fraction(1000),
        "meters": Fraction(1000), "metre": Fraction(1000), "metres": Fraction(1000), "km": Fraction(10**6),
            "kilometers": Fraction(10**6), "kilometres": Fraction(10**6),
    },
    "grams": {"g": Fraction(1), "gram": Fraction(1), "grams": Fraction(1), "kg": Fraction(1000),
        "kilogram": Fraction(1000), "kilograms": Fraction(1000), "kilos": Fraction(1000)},
    "litres": {"ml": Fraction(1), "milliliters": Fraction(1), "millilitres": Fraction(1), "l": Fraction(1000),
        "liter": Fraction(1000), "liters": Fraction(1000), "litre": Fraction(1000), "litres": Fraction(1000)},
    "money": {"cent": Fraction(1), "cents": Fraction(1), "¢": Fraction(1), "dollar": Fraction(100),
        "dollars": Fraction(100), "$": Fraction(100), "euro": Fraction(100), "euros": Fraction(100)},
    "degrees": {"''": Fraction(1), "′′": Fraction(1), "″": Fraction(1), "′": Fraction(60), "°": Fraction(3600),
        "degree": Fraction(3600), "degrees": Fraction(3600), "arcminutes": Fraction(60), "arcseconds": Fraction(1)},
}  # fmt: skip
_GLUED_UNITS_TEXT = (
    "km cm mm nm m dm g kg mg lb lbs oz l L ml mL dl cl kl s ms ns h hr hrs min mins sec secs d mph kph kmh "
    "fps rpm ft in yd mi V mV kV W kW MW kWh Wh J kJ MJ N kN Pa kPa MPa Hz kHz MHz GHz bit bits GB MB KB kB TB "
    "px pt pts pp cal kcal A mA mol mmol atm bar dB eV keV MeV C F ha st nd rd th ° °C °F ℃ ℉ ′ ″ Ω kΩ ohm USD "
    "EUR GBP JPY INR CNY RMB € £ ¥ ₹ ₩ ₽ ¢ c $ 個 个 개 명 원 元 円 人 年 天 日 岁 歳 分 秒 小时 "
    "時間 米 公里 千克 块 只 本 件 條 条 "
    "張 张 次 回 台 枚 匹"
)
GLUED_UNITS = frozenset(_GLUED_UNITS_TEXT.split())
"""What may follow a figure without a space and still be a unit."""
_STEP = re.compile(r"[\s,]{0,3}(?:and\s)?\s{0,2}(\d{1,6}(?:\.\d{1,6})?)\s{0,2}([A-Za-z'\"′″¢$°]{1,14})")


def unit_family(name: str) -> str | None:
    """The kind of quantity that a unit measures in a compound; None for a unit that no compound uses."""
    lowered = name.casefold().rstrip(".")
    return next((family for family, units in _FAMILIES.items() if lowered in units), None)


def compound_value(value: Fraction, unit: str, rest: str, question: str) -> tuple[Fraction, str] | None:
    """``2`` ``hours`` and `` 30 minutes`` as a number of one unit, and what follows; None if they are no compound.

    The unit is the one that the question asks for; where it names none of them, the largest.
    """
    lowered = unit.casefold().rstrip(".")
    step = _STEP.match(rest)
    if step is None:
        return None
    for units in _FAMILIES.values():
        if lowered not in units or step[2].casefold() not in units or units[step[2].casefold()] >= units[lowered]:
            continue
        total, smallest = value * units[lowered], units[lowered]
        while step is not None and step[2].casefold() in units and units[step[2].casefold()] < smallest:
            smallest = units[step[2].casefold()]
            total += Fraction(step[1]) * smallest
            rest = rest[step.end() :]
            step = _STEP.match(rest)
        return total / units[_asked(units, question) or lowered], rest
    return None


def _asked(units: dict[str, Fraction], question: str) -> str | None:
    """The unit that a question names after "how many" or "in"."""
    last = question[-400:].casefold()
    for match in re.finditer(r"\b(?:how many|number of|in|total)\s{1,3}([a-z]{1,14})\b", last):
        if match[1] in units and len(match[1]) > 2:
            return match[1]
    return None
