"""Worded problems that need an idea besides arithmetic (level 5 of the embedded benchmark)."""

from __future__ import annotations

import math

from pipeline.benchmark.embedded.worded import Draw, Family, Problem, step


def _legs(draw: Draw) -> Problem:
    hens, goats = draw.integer(9, 34), draw.integer(8, 29)
    heads, legs = hens + goats, 2 * hens + 4 * goats
    birds, beasts = draw.pick((("hens", "goats"), ("ducks", "sheep"), ("geese", "rabbits"), ("turkeys", "donkeys")))
    question = (
        f"On a farm there are only {birds} and {beasts}. Together they have {heads} heads and {legs} legs."
        f" How many {beasts} are there?"
    )
    steps = (
        step(f"Legs if all were {birds}", f"2 * {heads}", 2 * heads),
        step("Legs too many for that", f"{legs} - {2 * heads}", legs - 2 * heads),
        step(f"Number of {beasts}", f"{legs - 2 * heads} / 2", goats),
    )
    return Problem("legs", {"heads": heads, "legs": legs}, question, str(goats), steps)


def _together(draw: Draw) -> Problem:
    a, b = draw.pick(
        ((20, 30), (30, 60), (24, 40), (60, 90), (36, 45), (40, 60), (42, 56), (72, 90), (45, 90), (63, 84))
    )
    batches = draw.integer(2, 5)
    minutes = a * b * batches // (a + b)
    one, two = draw.name(), draw.name()
    job = draw.pick(("wash a coach", "fill a silo", "print an edition", "sort a delivery"))
    question = (
        f"{one} needs {a} minutes to {job}, and {two} needs {b} minutes for the same job. Working together at these"
        f" speeds, how many minutes do they need for {batches} such jobs?"
    )
    steps = (
        step("Product of the times", f"{a} * {b}", a * b),
        step("Sum of the times", f"{a} + {b}", a + b),
        step("Product for all jobs", f"{a * b} * {batches}", a * b * batches),
        step("Minutes together", f"{a * b * batches} / {a + b}", minutes),
    )
    return Problem("together", {"a": a, "b": b, "batches": batches}, question, str(minutes), steps)


def _seats(draw: Draw) -> Problem:
    first, more, rows = draw.integer(9, 21), draw.integer(2, 5), 2 * draw.integer(5, 12)
    last = first + (rows - 1) * more
    total = rows * (first + last) // 2
    question = (
        f"The first row of a theatre has {first} seats, and every row has {more} seats more than the one before."
        f" How many seats are in its {rows} rows?"
    )
    steps = (
        step("Increases", f"{rows} - 1", rows - 1),
        step("Seats added up to the last row", f"{rows - 1} * {more}", (rows - 1) * more),
        step("Last row", f"{first} + {(rows - 1) * more}", last),
        step("First and last row", f"{first} + {last}", first + last),
        step("All rows", f"{rows} * {first + last} / 2", total),
    )
    return Problem("seats", {"first": first, "more": more, "rows": rows}, question, str(total), steps)


def _bells(draw: Draw) -> Problem:
    a, b = draw.pick(((6, 8), (8, 12), (9, 12), (10, 15), (12, 16), (12, 18), (6, 10), (15, 20), (10, 25), (14, 21)))
    common = math.lcm(a, b)
    again = draw.integer(5, 19)
    span = again * common
    question = (
        f"Two bells ring together at noon. One rings every {a} minutes and the other every {b} minutes. How many more"
        f" times do they ring together in the {span} minutes that follow (the last minute included)?"
    )
    shared = math.gcd(a, b)
    steps = (
        step("Product of the intervals", f"{a} * {b}", a * b),
        step(f"Minutes between joint rings (greatest common divisor {shared})", f"{a * b} / {shared}", common),
        step("Joint rings", f"{span} / {common}", again),
    )
    return Problem("bells", {"a": a, "b": b, "span": span}, question, str(again), steps)


def _remainders(draw: Draw) -> Problem:
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


def _handshakes(draw: Draw) -> Problem:
    n = draw.integer(14, 30)
    k = draw.integer(5, n - 6)
    group = draw.pick(("members of one choir", "cousins", "players of one team", "colleagues"))
    question = (
        f"At a party of {n} people everyone shakes hands once with everyone else, except that the {k} {group} among"
        f" them do not shake hands with one another. How many handshakes are there?"
    )
    every, none = n * (n - 1), k * (k - 1)
    steps = (
        step("Ordered pairs of all", f"{n} * {n - 1}", every),
        step("Handshakes of all", f"{every} / 2", every // 2),
        step("Ordered pairs in the group", f"{k} * {k - 1}", none),
        step("Handshakes left out", f"{none} / 2", none // 2),
        step("Handshakes", f"{every // 2} - {none // 2}", every // 2 - none // 2),
    )
    return Problem("handshakes", {"n": n, "k": k}, question, str(every // 2 - none // 2), steps)


def _either(draw: Draw) -> Problem:
    a, b = draw.pick(((3, 5), (4, 7), (3, 7), (5, 6), (4, 9), (5, 8), (3, 8), (5, 7)))
    common = a * b
    top = common * draw.integer(4, 14)
    sign, mark = draw.pick((("a red dot", "a blue dot"), ("a star", "a moon"), ("a hole", "a stripe")))
    question = (
        f"Tickets are numbered from 1 to {top}. Every {a}th ticket gets {sign} and every {b}th gets {mark}. How many"
        f" tickets get exactly one of the two marks?"
    )
    first, second, both = top // a, top // b, top // common
    steps = (
        step(f"Tickets with {sign}", f"{top} / {a}", first),
        step(f"Tickets with {mark}", f"{top} / {b}", second),
        step("Tickets with both", f"{top} / {common}", both),
        step("Marks given", f"{first} + {second}", first + second),
        step("Marks on tickets with both", f"2 * {both}", 2 * both),
        step("Exactly one", f"{first + second} - {2 * both}", first + second - 2 * both),
    )
    return Problem("either", {"a": a, "b": b, "top": top}, question, str(first + second - 2 * both), steps)


def _backwards(draw: Draw) -> Problem:
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


LEVEL_5: tuple[Family, ...] = (
    _legs, _together, _seats, _bells, _remainders, _handshakes, _either, _backwards,
)  # fmt: skip
