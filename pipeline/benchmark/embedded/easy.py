"""Worded problems of one and two steps (levels 1 and 2 of the embedded benchmark)."""

from __future__ import annotations

from pipeline.benchmark.embedded.worded import Draw, Family, Problem, step


def _joined(draw: Draw) -> Problem:
    a, b = draw.integer(12, 89), draw.integer(11, 78)
    who, what = draw.name(), draw.things()
    question = draw.pick((
        f"{who} has {a} {what} and finds {b} more. How many {what} does {who} have now?",
        f"A box holds {a} {what}. {who} puts another {b} {what} into it. How many {what} are in the box now?",
    ))  # fmt: skip
    return Problem(
        "joined", {"a": a, "b": b}, question, str(a + b), (step(f"All {what} together", f"{a} + {b}", a + b),)
    )


def _left_over(draw: Draw) -> Problem:
    b = draw.integer(13, 57)
    a = b + draw.integer(8, 66)
    who, what = draw.name(), draw.food()
    question = draw.pick((
        f"A bakery has {a} {what} in the morning and sells {b} of them. How many {what} are left?",
        f"{who} picks up {a} {what} for a fair, and {b} of them are eaten. How many {what} remain?",
    ))  # fmt: skip
    return Problem("left_over", {"a": a, "b": b}, question, str(a - b), (step("Left over", f"{a} - {b}", a - b),))


def _packs(draw: Draw) -> Problem:
    a, b = draw.integer(4, 14), draw.integer(6, 24)
    who, what = draw.name(), draw.things()
    question = draw.pick((
        f"{who} buys {a} packs of {what}. Each pack contains {b} {what}. How many {what} is that in all?",
        f"There are {a} shelves with {b} {what} on each shelf. How many {what} are on the shelves altogether?",
    ))  # fmt: skip
    return Problem("packs", {"a": a, "b": b}, question, str(a * b), (step("Packs times content", f"{a} * {b}", a * b),))


def _shared(draw: Draw) -> Problem:
    b, each = draw.integer(3, 12), draw.integer(7, 29)
    total = b * each
    who, what = draw.name(), draw.things()
    question = draw.pick((
        f"{who} shares {total} {what} equally among {b} friends. How many {what} does each friend get?",
        f"A teacher puts {total} {what} into {b} equal piles. How many {what} are in one pile?",
    ))  # fmt: skip
    return Problem(
        "shared", {"total": total, "b": b}, question, str(each), (step("Equal shares", f"{total} / {b}", each),)
    )


def _how_many_more(draw: Draw) -> Problem:
    b = draw.integer(15, 64)
    a = b + draw.integer(9, 58)
    one, two, what = draw.name(), draw.name(), draw.things()
    question = draw.pick((
        f"{one} owns {a} {what}, while {two} owns {b}. How many more {what} does {one} own than {two}?",
        f"{two} counted {b} {what} and {one} counted {a}. By how many did {one} count more?",
    ))  # fmt: skip
    return Problem("how_many_more", {"a": a, "b": b}, question, str(a - b), (step("Difference", f"{a} - {b}", a - b),))


def _missing_part(draw: Draw) -> Problem:
    a = draw.integer(14, 61)
    goal = a + draw.integer(12, 75)
    who, what = draw.name(), draw.things()
    question = draw.pick((
        f"{who} wants to collect {goal} {what} and already has {a}. How many {what} are still missing?",
        f"An album has room for {goal} {what}. {who} has filled {a} places. How many places are still empty?",
    ))  # fmt: skip
    return Problem(
        "missing_part", {"a": a, "goal": goal}, question, str(goal - a), (step("Missing", f"{goal} - {a}", goal - a),)
    )


def _wheels(draw: Draw) -> Problem:
    n = draw.integer(11, 38)
    vehicle, wheels = draw.pick((("tricycles", 3), ("cars", 4), ("bicycles", 2), ("six-wheeled lorries", 6)))
    question = draw.pick((
        f"How many wheels do {n} {vehicle} have if each has {wheels} wheels?",
        f"A yard is full of {vehicle}: there are {n}, with {wheels} wheels each. How many wheels stand in the yard?",
    ))  # fmt: skip
    return Problem(
        "wheels",
        {"n": n, "wheels": wheels},
        question,
        str(n * wheels),
        (step("Wheels", f"{n} * {wheels}", n * wheels),),
    )


def _change(draw: Draw) -> Problem:
    bill = draw.pick((20, 50, 100))
    price = draw.integer(bill // 3, bill - 3)
    who, item = draw.name(), draw.pick(("a lamp", "a scarf", "a book", "a kettle", "a backpack", "a board game"))
    question = draw.pick((
        f"{who} pays for {item} costing ${price} with a ${bill} note. How many dollars of change does {who} get?",
        f"With ${bill} in the pocket, {who} buys {item} for ${price}. How many dollars does {who} have left?",
    ))  # fmt: skip
    values = {"bill": bill, "price": price}
    return Problem("change", values, question, str(bill - price), (step("Change", f"{bill} - {price}", bill - price),))


def _purchase(draw: Draw) -> Problem:
    n, price = draw.integer(3, 9), draw.integer(4, 11)
    cost = n * price
    bill = next(note for note in (50, 100, 200) if note > cost)
    who, what = draw.name(), draw.things()
    question = draw.pick((
        f"{who} buys {n} sets of {what} at ${price} a set and pays with ${bill}. How many dollars come back?",
        f"One set of {what} costs ${price}. {who} has ${bill} and takes {n} sets. How many dollars are left?",
    ))  # fmt: skip
    steps = (step("Cost", f"{n} * {price}", cost), step("Money back", f"{bill} - {cost}", bill - cost))
    return Problem("purchase", {"n": n, "price": price, "bill": bill}, question, str(bill - cost), steps)


def _packs_minus(draw: Draw) -> Problem:
    a, b = draw.integer(5, 12), draw.integer(8, 20)
    c = draw.integer(7, a * b // 2)
    who, what = draw.name(), draw.food()
    question = draw.pick((
        f"{who} fills {a} bags with {b} {what} each and then gives away {c} {what}. How many {what} are left?",
        f"A stall receives {a} crates of {b} {what}; {c} of the {what} are bruised. How many are good?",
    ))  # fmt: skip
    steps = (step("At first", f"{a} * {b}", a * b), step("After taking some away", f"{a * b} - {c}", a * b - c))
    return Problem("packs_minus", {"a": a, "b": b, "c": c}, question, str(a * b - c), steps)


def _pooled_shares(draw: Draw) -> Problem:
    c, each = draw.integer(4, 9), draw.integer(11, 26)
    total = c * each
    a = draw.integer(total // 4, total // 2)
    b = total - a
    one, two, what = draw.name(), draw.name(), draw.things()
    question = draw.pick((
        f"{one} brings {a} {what} and {two} brings {b}. They put them together and make {c} equal bundles."
        f" How many {what} are in each bundle?",
        f"Two jars with {a} and {b} {what} are emptied onto a table, and {c} children take the same number each, so"
        f" that none is left. How many {what} does a child take?",
    ))  # fmt: skip
    steps = (step("Together", f"{a} + {b}", total), step("Each", f"{total} / {c}", each))
    return Problem("pooled_shares", {"a": a, "b": b, "c": c}, question, str(each), steps)


def _times_as_many(draw: Draw) -> Problem:
    a, k = draw.integer(9, 34), draw.integer(3, 6)
    one, two, what = draw.name(), draw.name(), draw.things()
    question = draw.pick((
        f"{one} has {a} {what}. {two} has {k} times as many. How many {what} do they have together?",
        f"On Monday {one} folded {a} {what}; on Tuesday it was {k} times that number. How many in the two days?",
    ))  # fmt: skip
    steps = (step("The larger number", f"{k} * {a}", k * a), step("Together", f"{a} + {k * a}", a + k * a))
    return Problem("times_as_many", {"a": a, "k": k}, question, str(a + k * a), steps)


def _bus(draw: Draw) -> Problem:
    a = draw.integer(24, 52)
    off, on = draw.integer(6, 19), draw.integer(5, 23)
    vehicle = draw.pick(("bus", "tram", "ferry", "train carriage"))
    question = draw.pick((
        f"A {vehicle} carries {a} passengers. At the next stop {off} get off and {on} get on."
        f" How many passengers are aboard then?",
        f"When a {vehicle} leaves, {a} people are inside. Later {off} of them leave it and {on} others join."
        f" How many people are inside now?",
    ))  # fmt: skip
    steps = (
        step("After some left", f"{a} - {off}", a - off),
        step("After others joined", f"{a - off} + {on}", a - off + on),
    )
    return Problem("bus", {"a": a, "off": off, "on": on}, question, str(a - off + on), steps)


def _two_kinds(draw: Draw) -> Problem:
    n, p, m, q = draw.integer(3, 9), draw.integer(4, 12), draw.integer(2, 8), draw.integer(13, 19)
    who, small, large = draw.name(), draw.things(), draw.food()
    question = draw.pick((
        f"{who} orders {n} boxes of {small} for ${p} each and {m} trays of {large} for ${q} each."
        f" What is the total in dollars?",
        f"At a market, {m} trays of {large} at ${q} and {n} boxes of {small} at ${p} go to {who}."
        f" How many dollars does {who} pay?",
    ))  # fmt: skip
    first, second = n * p, m * q
    steps = (
        step("First kind", f"{n} * {p}", first),
        step("Second kind", f"{m} * {q}", second),
        step("Total", f"{first} + {second}", first + second),
    )
    return Problem("two_kinds", {"n": n, "p": p, "m": m, "q": q}, question, str(first + second), steps)


def _perimeter(draw: Draw) -> Problem:
    w = draw.integer(7, 26)
    length = w + draw.integer(4, 25)
    place = draw.pick(("garden", "field", "playground", "meadow"))
    question = draw.pick((
        f"A rectangular {place} is {length} metres long and {w} metres wide. How many metres of fence go around it?",
        f"{draw.name()} walks once around the edge of a rectangular {place} of {length} by {w} metres."
        f" How many metres is the walk?",
    ))  # fmt: skip
    half = length + w
    steps = (step("Length and width", f"{length} + {w}", half), step("Twice that", f"2 * {half}", 2 * half))
    return Problem("perimeter", {"length": length, "w": w}, question, str(2 * half), steps)


def _pages(draw: Draw) -> Problem:
    days, each = draw.integer(5, 12), draw.integer(12, 31)
    total = days * each + draw.integer(17, 120)
    who = draw.name()
    question = draw.pick((
        f"A novel has {total} pages. {who} reads {each} pages a day for {days} days. How many pages are left?",
        f"{who} must fold {total} leaflets and manages {each} a day. After {days} days, how many are still to do?",
    ))  # fmt: skip
    done = days * each
    steps = (step("Done", f"{days} * {each}", done), step("Left", f"{total} - {done}", total - done))
    return Problem("pages", {"total": total, "days": days, "each": each}, question, str(total - done), steps)


LEVEL_1: tuple[Family, ...] = (
    _joined, _left_over, _packs, _shared, _how_many_more, _missing_part, _wheels, _change,
)  # fmt: skip
LEVEL_2: tuple[Family, ...] = (
    _purchase, _packs_minus, _pooled_shares, _times_as_many, _bus, _two_kinds, _perimeter, _pages,
)  # fmt: skip
