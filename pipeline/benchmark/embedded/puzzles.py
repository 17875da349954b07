"""The two families that no line of data says: one searches for its number, one works backwards stall by stall."""

from __future__ import annotations

from pipeline.benchmark.embedded.worded import Draw, Problem, step


def remainders(draw: Draw) -> Problem:
    m, k = draw.pick(((5, 7), (7, 8), (5, 9), (7, 9), (8, 9), (7, 11), (9, 11), (8, 11)))
    r, s = draw.integer(1, m - 1), draw.integer(1, k - 1)
    number = next(value for value in range(m * k) if value % m == r and value % k == s)
    if number <= max(m, k):
        number += m * k
    what = draw.things()
    question = (
        f"{draw.name()} has more than {max(m, k)} {what}. In rows of {m} there are {r} left over; in rows of {k} there"
        f" are {s} left over. What is the smallest possible number of {what}?"
    )
    full, turns = (number - r) // m, (number - s) // k
    steps = (
        step(f"With {full} rows of {m}", f"{full} * {m}", full * m),
        step("And the remainder", f"{full * m} + {r}", number),
        step(f"Check with {turns} rows of {k}", f"{turns} * {k}", turns * k),
        step("The same number", f"{turns * k} + {s}", number),
    )
    return Problem("remainders", {"m": m, "r": r, "k": k, "s": s}, question, str(number), steps)


def backwards(draw: Draw) -> Problem:
    left, extra, times = draw.integer(3, 17), draw.integer(1, 6), draw.pick((3, 4))
    who, what = draw.name(), draw.food()
    count = {3: "three", 4: "four"}[times]
    question = (
        f"{who} sells {what} at {count} stalls. At each stall {who} sells half of the {what} still there and then"
        f" {extra} more. After the last stall {left} {what} are left. How many {what} were there at the start?"
    )
    steps: list[str] = []
    amount = left
    for place in range(times, 0, -1):
        half = amount + extra
        steps.append(step(f"Half of what came to stall {place}", f"{amount} + {extra}", half))
        steps.append(step(f"What came to stall {place}", f"2 * {half}", 2 * half))
        amount = 2 * half
    return Problem("backwards", {"left": left, "extra": extra, "times": times}, question, str(amount), tuple(steps))
