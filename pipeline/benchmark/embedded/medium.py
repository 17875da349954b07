"""Worded problems of three and more steps with percents, fractions and rates (levels 3 and 4)."""

from __future__ import annotations

from pipeline.benchmark.embedded.worded import Draw, Family, Problem, step


def _discount(draw: Draw) -> Problem:
    n, price, percent = draw.integer(3, 8), 20 * draw.integer(2, 9), 5 * draw.integer(2, 8)
    who, item = draw.name(), draw.pick(("chairs", "jackets", "lanterns", "blankets", "suitcases"))
    question = (
        f"{item.capitalize()} normally cost ${price} apiece, and a shop takes {percent}% off. {who} buys {n} of the"
        f" {item}. How many dollars does {who} pay?"
    )
    off = price * percent // 100
    now = price - off
    steps = (
        step("Reduction on one", f"{price} * {percent} / 100", off),
        step("Price of one", f"{price} - {off}", now),
        step("Price of all", f"{n} * {now}", n * now),
    )
    return Problem("discount", {"n": n, "price": price, "percent": percent}, question, str(n * now), steps)


def _fractions(draw: Draw) -> Problem:
    k, m, unit = draw.integer(3, 5), draw.integer(2, 4), draw.integer(2, 6)
    total = k * m * unit
    who = draw.pick(("pupils", "club members", "workers", "campers"))
    question = (
        f"Of {total} {who}, one in every {k} comes on foot. Of the rest, one in every {m} comes by bicycle, and all"
        f" others take the bus. How many {who} take the bus?"
    )
    walk = total // k
    rest = total - walk
    ride = rest // m
    steps = (
        step("On foot", f"{total} / {k}", walk),
        step("The rest", f"{total} - {walk}", rest),
        step("By bicycle", f"{rest} / {m}", ride),
        step("By bus", f"{rest} - {ride}", rest - ride),
    )
    return Problem("fractions", {"total": total, "k": k, "m": m}, question, str(rest - ride), steps)


def _tank(draw: Draw) -> Problem:
    start, rate, t = draw.integer(30, 90), draw.integer(7, 16), draw.integer(6, 14)
    leak = draw.integer(2, rate - 2)
    s = draw.integer(4, t)
    question = draw.pick((
        f"A tank holds {start} litres. A pump adds {rate} litres a minute for {t} minutes; then a leak loses {leak}"
        f" litres a minute for {s} minutes. How many litres are in the tank at the end?",
        f"A pond contains {start} litres of water. It gains {rate} litres per minute during {t} minutes of rain and"
        f" afterwards loses {leak} litres per minute for {s} minutes. How many litres does it contain then?",
    ))  # fmt: skip
    gain, loss = rate * t, leak * s
    steps = (
        step("Gained", f"{rate} * {t}", gain),
        step("Lost", f"{leak} * {s}", loss),
        step("After the gain", f"{start} + {gain}", start + gain),
        step("At the end", f"{start + gain} - {loss}", start + gain - loss),
    )
    values = {"start": start, "rate": rate, "t": t, "leak": leak, "s": s}
    return Problem("tank", values, question, str(start + gain - loss), steps)


def _savings(draw: Draw) -> Problem:
    start, spend, weeks = draw.integer(15, 95), draw.integer(12, 38), draw.integer(5, 14)
    earn = spend + draw.integer(9, 42)
    who = draw.name()
    question = (
        f"{who} has ${start} in savings, earns ${earn} every week and spends ${spend} of it. How many dollars does"
        f" {who} have after {weeks} weeks?"
    )
    net = earn - spend
    steps = (
        step("Saved in a week", f"{earn} - {spend}", net),
        step("Saved in all weeks", f"{weeks} * {net}", weeks * net),
        step("With the start", f"{start} + {weeks * net}", start + weeks * net),
    )
    values = {"start": start, "earn": earn, "spend": spend, "weeks": weeks}
    return Problem("savings", values, question, str(start + weeks * net), steps)


def _ages(draw: Draw) -> Problem:
    young, k, t = draw.integer(6, 14), draw.integer(3, 5), draw.integer(4, 17)
    one, two = draw.name(), draw.name()
    question = (
        f"{one} is {young} years old and {two} is {k} times as old. What will be the sum of their ages in {t} years?"
    )
    old = k * young
    steps = (
        step(f"Age of {two}", f"{k} * {young}", old),
        step("Sum now", f"{young} + {old}", young + old),
        step("Years added", f"2 * {t}", 2 * t),
        step("Sum then", f"{young + old} + {2 * t}", young + old + 2 * t),
    )
    return Problem("ages", {"young": young, "k": k, "t": t}, question, str(young + old + 2 * t), steps)


def _recipe(draw: Draw) -> Problem:
    people, grams = draw.integer(3, 6), 15 * draw.integer(3, 9)
    base, guests = people * grams, draw.integer(9, 16)
    have = draw.integer(60, guests * grams - 40)
    stuff = draw.pick(("flour", "rice", "oats", "sugar", "lentils"))
    question = (
        f"A recipe for {people} people needs {base} grams of {stuff}. {draw.name()} cooks it for {guests} people and"
        f" has {have} grams of {stuff}. How many grams must be bought?"
    )
    need = guests * grams
    steps = (
        step("For one person", f"{base} / {people}", grams),
        step("For everyone", f"{guests} * {grams}", need),
        step("To buy", f"{need} - {have}", need - have),
    )
    values = {"people": people, "base": base, "guests": guests, "have": have}
    return Problem("recipe", values, question, str(need - have), steps)


def _journey(draw: Draw) -> Problem:
    v1, h1, v2, h2 = draw.integer(45, 80), draw.integer(2, 5), draw.integer(81, 110), draw.integer(2, 4)
    total = v1 * h1 + v2 * h2 + draw.integer(35, 160)
    question = (
        f"A lorry must go {total} kilometres. It drives {h1} hours at {v1} kilometres an hour and then {h2} hours at"
        f" {v2} kilometres an hour. How many kilometres remain?"
    )
    first, second = v1 * h1, v2 * h2
    steps = (
        step("First part", f"{v1} * {h1}", first),
        step("Second part", f"{v2} * {h2}", second),
        step("Driven", f"{first} + {second}", first + second),
        step("Remaining", f"{total} - {first + second}", total - first - second),
    )
    values = {"total": total, "v1": v1, "h1": h1, "v2": v2, "h2": h2}
    return Problem("journey", values, question, str(total - first - second), steps)


def _schedule(draw: Draw) -> Problem:
    n, length, pause = draw.integer(4, 9), draw.integer(18, 47), draw.integer(5, 14)
    event = draw.pick(("talks", "matches", "lessons", "interviews"))
    question = (
        f"A day has {n} {event} of {length} minutes each, with a pause of {pause} minutes between one and the next."
        f" How many minutes pass from the beginning of the first to the end of the last?"
    )
    busy, gaps = n * length, n - 1
    steps = (
        step(f"The {event}", f"{n} * {length}", busy),
        step("Number of pauses", f"{n} - 1", gaps),
        step("Pauses", f"{gaps} * {pause}", gaps * pause),
        step("Together", f"{busy} + {gaps * pause}", busy + gaps * pause),
    )
    return Problem("schedule", {"n": n, "length": length, "pause": pause}, question, str(busy + gaps * pause), steps)


def _average_wanted(draw: Draw) -> Problem:
    k, mean = draw.integer(3, 6), draw.integer(61, 79)
    rise = draw.integer(1, 3)
    goal = mean + rise
    who = draw.name()
    question = (
        f"After {k} tests {who} has an average of {mean} points. How many points are needed in the next test to bring"
        f" the average to {goal}?"
    )
    have, want = k * mean, (k + 1) * goal
    steps = (
        step("Points so far", f"{k} * {mean}", have),
        step("Tests then", f"{k} + 1", k + 1),
        step("Points wanted", f"{k + 1} * {goal}", want),
        step("Next test", f"{want} - {have}", want - have),
    )
    return Problem("average_wanted", {"k": k, "mean": mean, "goal": goal}, question, str(want - have), steps)


def _overtime(draw: Draw) -> Problem:
    rate, hours, tax = 2 * draw.integer(6, 14), 40 + draw.integer(3, 14), 5 * draw.integer(3, 9)
    who = draw.name()
    question = (
        f"{who} earns ${rate} an hour for the first 40 hours of a week and one and a half times as much for every hour"
        f" beyond. After a week of {hours} hours, ${tax} is withheld. How many dollars are paid out?"
    )
    high, extra = rate * 3 // 2, hours - 40
    base, over = 40 * rate, extra * high
    steps = (
        step("Overtime rate", f"{rate} * 3 / 2", high),
        step("Overtime hours", f"{hours} - 40", extra),
        step("Overtime pay", f"{extra} * {high}", over),
        step("Regular pay", f"40 * {rate}", base),
        step("Both", f"{base} + {over}", base + over),
        step("Paid out", f"{base + over} - {tax}", base + over - tax),
    )
    return Problem("overtime", {"rate": rate, "hours": hours, "tax": tax}, question, str(base + over - tax), steps)


def _ratio(draw: Draw) -> Problem:
    a = draw.integer(2, 4)
    b = a + draw.integer(1, 4)
    part = draw.integer(9, 24)
    total = (a + b) * part
    gift = draw.integer(2, ((b - a) * part - 1) // 2)
    one, two, what = draw.name(), draw.name(), draw.things()
    question = (
        f"{one} and {two} divide {total} {what} in the ratio {a} to {b}. Then {two} gives {gift} {what} to {one}."
        f" How many more {what} does {two} have than {one} now?"
    )
    left, right = a * part, b * part
    steps = (
        step("Parts", f"{a} + {b}", a + b),
        step("One part", f"{total} / {a + b}", part),
        step(f"{one} at first", f"{a} * {part}", left),
        step(f"{two} at first", f"{b} * {part}", right),
        step(f"{one} then", f"{left} + {gift}", left + gift),
        step(f"{two} then", f"{right} - {gift}", right - gift),
        step("Difference", f"{right - gift} - {left + gift}", right - left - 2 * gift),
    )
    values = {"total": total, "a": a, "b": b, "gift": gift}
    return Problem("ratio", values, question, str(right - left - 2 * gift), steps)


def _mixture(draw: Draw) -> Problem:
    x, y = 10 * draw.integer(2, 9), 10 * draw.integer(2, 9)
    p, q = 10 * draw.integer(1, 4), 10 * draw.integer(5, 9)
    question = (
        f"A drink is mixed from {x} litres of a syrup that is {p}% juice and {y} litres of one that is {q}% juice."
        f" How many litres of the drink are not juice?"
    )
    first, second = x * p // 100, y * q // 100
    juice, both = first + second, x + y
    steps = (
        step("Juice of the first", f"{x} * {p} / 100", first),
        step("Juice of the second", f"{y} * {q} / 100", second),
        step("Juice", f"{first} + {second}", juice),
        step("Drink", f"{x} + {y}", both),
        step("Not juice", f"{both} - {juice}", both - juice),
    )
    return Problem("mixture", {"x": x, "y": y, "p": p, "q": q}, question, str(both - juice), steps)


def _catch_up(draw: Draw) -> Problem:
    slow, gap, minutes = 10 * draw.integer(6, 9), draw.integer(10, 30), draw.integer(8, 25)
    ahead = gap * minutes
    fast = slow + gap
    one, two = draw.name(), draw.name()
    question = (
        f"{one} is {ahead} metres ahead of {two} and walks {slow} metres a minute. {two} follows at {fast} metres a"
        f" minute. How many metres has {two} walked when {one} is caught?"
    )
    steps = (
        step("Gained in a minute", f"{fast} - {slow}", gap),
        step("Minutes", f"{ahead} / {gap}", minutes),
        step("Walked", f"{minutes} * {fast}", minutes * fast),
    )
    return Problem("catch_up", {"ahead": ahead, "slow": slow, "fast": fast}, question, str(minutes * fast), steps)


def _up_and_down(draw: Draw) -> Problem:
    price, up, down = 200 * draw.integer(2, 9), 10 * draw.integer(1, 5), 10 * draw.integer(1, 4)
    item = draw.pick(("bicycle", "sofa", "camera", "guitar", "tent"))
    question = (
        f"The price of a {item} was ${price}. It rose by {up}% and later fell by {down}% of the higher price. How many"
        f" dollars does the {item} cost now?"
    )
    rise = price * up // 100
    top = price + rise
    fall = top * down // 100
    steps = (
        step("Rise", f"{price} * {up} / 100", rise),
        step("Higher price", f"{price} + {rise}", top),
        step("Fall", f"{top} * {down} / 100", fall),
        step("Price now", f"{top} - {fall}", top - fall),
    )
    return Problem("up_and_down", {"price": price, "up": up, "down": down}, question, str(top - fall), steps)


def _tiles(draw: Draw) -> Problem:
    side, across, along, price = draw.pick((20, 25, 50)), draw.integer(3, 6), draw.integer(4, 9), draw.integer(2, 6)
    question = (
        f"A floor {along} metres long and {across} metres wide is laid with square tiles of {side} centimetres. A tile"
        f" costs ${price}. How many dollars do the tiles cost?"
    )
    per_metre = 100 // side
    rows, columns = along * per_metre, across * per_metre
    count = rows * columns
    steps = (
        step("Tiles to a metre", f"100 / {side}", per_metre),
        step("Tiles along", f"{along} * {per_metre}", rows),
        step("Tiles across", f"{across} * {per_metre}", columns),
        step("Tiles", f"{rows} * {columns}", count),
        step("Cost", f"{count} * {price}", count * price),
    )
    values = {"along": along, "across": across, "side": side, "price": price}
    return Problem("tiles", values, question, str(count * price), steps)


def _approach(draw: Draw) -> Problem:
    v1, v2, hours = 5 * draw.integer(8, 14), 5 * draw.integer(15, 22), draw.integer(2, 6)
    distance = (v1 + v2) * hours
    question = (
        f"Two trains {distance} kilometres apart set off towards each other, one at {v1} and the other at {v2}"
        f" kilometres an hour. How many kilometres more than the slower one has the faster one gone when they meet?"
    )
    steps = (
        step("Closer in an hour", f"{v1} + {v2}", v1 + v2),
        step("Hours", f"{distance} / {v1 + v2}", hours),
        step("Slower train", f"{v1} * {hours}", v1 * hours),
        step("Faster train", f"{v2} * {hours}", v2 * hours),
        step("Difference", f"{v2 * hours} - {v1 * hours}", (v2 - v1) * hours),
    )
    return Problem("approach", {"distance": distance, "v1": v1, "v2": v2}, question, str((v2 - v1) * hours), steps)


LEVEL_3: tuple[Family, ...] = (_discount, _fractions, _tank, _savings, _ages, _recipe, _journey, _schedule)
LEVEL_4: tuple[Family, ...] = (
    _average_wanted, _overtime, _ratio, _mixture, _catch_up, _up_and_down, _tiles, _approach,
)  # fmt: skip
