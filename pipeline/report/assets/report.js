"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const el = (tag, text, cls) => {
    const node = document.createElement(tag);
    if (text !== undefined && text !== null) node.textContent = text;
    if (cls) node.className = cls;
    return node;
  };

  // Light and dark: the system's choice until the button is pressed.
  const theme = byId("theme");
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const nameTheme = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  nameTheme();

  // Tables as CSV: all digits, intervals in two columns, nothing a spreadsheet would run.
  const plain = (text) => (/^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text);
  const quote = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const csvOf = (table) => {
    const spans = [...table.tHead.rows[0].cells].map((cell) => cell.hasAttribute("data-span"));
    const line = (row, head) =>
      [...row.cells].flatMap((cell, k) => {
        const text = [...cell.childNodes].filter((n) => n.nodeName !== "BUTTON" && n.nodeName !== "svg").map((n) => n.textContent).join("").replaceAll("\u00a0", " ");
        if (!spans[k]) return ["v" in cell.dataset ? cell.dataset.v : plain(text)];
        if (head) return [`${text} low`, `${text} high`];
        return "w" in cell.dataset ? [cell.dataset.v, cell.dataset.w] : ["", ""];
      });
    return [...table.rows].map((row, k) => line(row, k === 0).map(quote).join(",")).join("\r\n") + "\r\n";
  };
  const save = (text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = "table.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  for (const button of document.querySelectorAll(".csv")) {
    button.addEventListener("click", async () => {
      const text = csvOf(button.parentElement.querySelector("table"));
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "copied";
      } catch {
        save(text);
        button.textContent = "saved";
      }
      setTimeout(() => (button.textContent = "CSV"), 1500);
    });
  }

  // Boards are sorted by the column whose header is pressed: numbers by their digits, names as they read.
  for (const table of document.querySelectorAll(".board table")) {
    [...table.tHead.rows[0].cells].forEach((head, k) => {
      if (head.classList.contains("drawn")) return;
      const button = el("button", "↕", "sort");
      button.type = "button";
      button.setAttribute("aria-label", `Sort by ${head.textContent}`);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = (row) => row.cells[k].dataset.v ?? row.cells[k].textContent;
        const order = (a, b) => (isNaN(parseFloat(key(a))) || isNaN(parseFloat(key(b))) ? key(a).localeCompare(key(b)) : parseFloat(key(a)) - parseFloat(key(b)));
        const rows = [...table.tBodies[0].rows].sort((a, b) => (up ? order(a, b) : order(b, a)));
        table.tBodies[0].append(...rows);
      });
      head.append(button);
    });
  }

  // Items: an index that is searched at once, details in blocks that are unpacked when looked at.
  const list = byId("item-list");
  if (!list) {
    root.dataset.ready = "yes";
    return;
  }
  const unpack = async (id) => {
    const packed = Uint8Array.from(atob(byId(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  const kept = new Map();
  const block = (number) => {
    if (!kept.has(number)) {
      if (kept.size > 12) kept.delete(kept.keys().next().value);
      kept.set(number, unpack(`block-${number}`));
    }
    return kept.get(number);
  };

  const shown = (value) => (value === null || value === undefined ? "null" : String(value));
  const line = (title, ...parts) => {
    const node = el("p");
    node.append(el("strong", `${title}: `), parts.filter((part) => part !== "").join(" · "));
    return node;
  };
  const grid = (caption, heads, rows) => {
    const table = el("table");
    table.append(el("caption", caption));
    const head = table.createTHead().insertRow();
    for (const name of heads) {
      const cell = el("th", name);
      cell.scope = "col";
      head.append(cell);
    }
    const body = table.createTBody();
    for (const row of rows) {
      const made = body.insertRow();
      row.forEach((value, k) => {
        const cell = el(k ? "td" : "th", shown(value), value === null ? "null" : "");
        if (!k) cell.scope = "row";
        made.append(cell);
      });
    }
    const box = el("div", null, "scroll");
    box.append(table);
    return box;
  };
  const grade = (phi) =>
    phi === null || phi === undefined ? el("span", "no φ", "null") : el("span", `φ = ${phi}`, phi >= 0.5 ? "right" : "wrong");
  const reply = (text) => (text === null ? el("p", "no reply", "null") : el("pre", text));

  // What each call was asked: the run's prompts, filled with the texts of this page.
  const judgedOf = (text, judged) =>
    typeof judged === "string" ? judged : text === null || judged === null ? null : text.slice(0, text.length - judged);
  const filled = (pattern, texts) =>
    pattern.replace(/\ue000(\w+)\ue001/g, (_, name) => (name in texts && texts[name] !== null ? texts[name] : `[${name}: not on this page]`));
  const callsOf = (item, index, k) => {
    const found = item.targets[k];
    const target = index.targets[k];
    const ours = judgedOf(found.text, found.judged);
    const calls = [];
    const add = (title, name, texts) => calls.push([title, name, texts || {}]);
    if (found.outcome !== null) add(`answer, asked of ${target}`, "answer");
    found.scores.forEach(([prompt, score]) => add(`${prompt}, asked of ${index.judge}: ${shown(score)}`, prompt, { response: ours }));
    for (const [level, first, second] of found.pairs) {
      const model = index.levels[level];
      const other = index.targets.indexOf(model) >= 0 ? item.targets[index.targets.indexOf(model)] : null;
      const anchor = item.anchors[index.anchors.indexOf(model)];
      const theirs = other ? judgedOf(other.text, other.judged) : anchor ? judgedOf(anchor[2], anchor[3]) : null;
      add(`against the ${level} anchor, shown first, asked of ${index.judge}: ${shown(first)}`, "pairwise", { response_a: ours, response_b: theirs });
      add(`against the ${level} anchor, shown second, asked of ${index.judge}: ${shown(second)}`, "pairwise", { response_a: theirs, response_b: ours });
    }
    const [w1, w2] = item.chains;
    if (Object.keys(found.chains).length) {
      add(`chains of draw 0, w1 first, asked of ${target}`, "preference", { chain_a: w1, chain_b: w2 });
      add(`chains of draw 0, w2 first, asked of ${target}`, "preference", { chain_a: w2, chain_b: w1 });
    }
    if (found.taus.length) {
      const texts = { chain_a: w1, chain_b: w2, preference: found.phrase };
      add(`τ of draw 0, asked of ${index.regressor}: ${shown(found.taus[0])}`, "tau", texts);
    }
    if (found.candidates.length) {
      add(`candidates, asked of ${target}`, "candidates");
      add(`score of a candidate, asked of ${index.judge}`, "candidate_scores");
    }
    return calls.filter(([, name]) => name in index.prompts);
  };
  const lazily = (entry, make) =>
    entry.addEventListener("toggle", () => {
      if (!entry.open || entry.dataset.filled) return;
      entry.dataset.filled = "yes";
      entry.append(...make());
    });
  const promptOf = (item, index, [title, name, texts]) => {
    const entry = el("details", null, "prompt");
    entry.append(el("summary", title));
    const choices = item.choices && item.choices.map((c, k) => `${String.fromCharCode(65 + k)}. ${c}`).join("\n");
    const pattern = index.prompts[name][item.choices ? 0 : 1];
    lazily(entry, () => [el("pre", filled(pattern, { question: item.question, choices, ...texts }))]);
    return entry;
  };
  const promptsOf = (item, index, calls, label) => {
    const entry = el("details", null, "prompts");
    entry.append(el("summary", `${label} (${calls.length})`));
    lazily(entry, () => calls.map((call) => promptOf(item, index, call)));
    return entry;
  };

  const cellsOf = (cells) => {
    const list = el("dl", null, "cells");
    for (const [name, value] of cells) {
      const long = value !== null && (value.length > 120 || value.includes("\n"));
      const box = el("div", null, long ? "long" : "");
      box.append(el("dt", name), long ? el("pre", value) : el("dd", shown(value), value === null ? "null" : ""));
      list.append(box);
    }
    return list;
  };
  const answerOf = (name, found) => {
    const box = el("section", null, "answer");
    const head = el("h4", name);
    box.append(head);
    if (found === null) {
      box.append(el("p", "not asked", "null"));
      return box;
    }
    head.append(" ", grade(found.phi));
    const said = found.confidence === null ? "no confidence stated" : `confidence ${found.confidence}`;
    if (found.outcome !== null) box.append(line("Answer", shown(found.answer), said, `outcome ${found.outcome}`));
    if (found.cells) box.append(cellsOf(found.cells));
    if (found.nulls.length) box.append(line("Why null", ...found.nulls));
    if (found.outcome !== null) box.append(reply(found.text));
    if (found.more.length) box.append(line("φ of further answers", ...found.more.map(shown)));
    if (found.scores.length) box.append(grid("Judge's scores", ["prompt", "score"], found.scores));
    if (found.repaired) box.append(line("Repaired scores", String(found.repaired)));
    if (found.pairs.length) {
      const rows = found.pairs.map(([anchor, first, second, same]) => [anchor, first, second, same ? "same" : "changes"]);
      box.append(grid("Against anchors", ["anchor", "shown first", "shown second", "with the order"], rows));
    }
    const chains = Object.entries(found.chains);
    if (chains.length) box.append(line("Verdicts on pairs of chains", ...chains.map(([verdict, n]) => `${n} ${verdict}`)));
    if (found.taus.length) box.append(line("Predictions τ, draw 0 first", ...found.taus.map(shown)));
    if (found.candidates.length) {
      const rows = found.candidates.map(([k, given, phi, scores]) => [k, given, phi, scores.map(shown).join(", ")]);
      box.append(grid("Candidates", ["candidate", "answer", "φ", "scores"], rows));
    }
    return box;
  };

  const detailsOf = (item, index) => {
    const inside = el("div", null, "inside");
    if (item.question) inside.append(el("pre", item.question));
    if (item.choices) inside.append(line("Choices", ...item.choices.map((c, k) => `${String.fromCharCode(65 + k)} ${c}`)));
    const level = item.profile === null ? "" : `${index.axis} ${item.profile}`;
    const labeled = item.labeled ? "labeled" : "not labeled";
    inside.append(item.gold === null ? line("Item", level, labeled) : line("Gold", shown(item.gold), level, labeled));
    const beside = el("div", null, "answers");
    inside.append(beside);
    item.targets.forEach((found, k) => {
      const box = answerOf(index.targets[k], found);
      const calls = found === null ? [] : callsOf(item, index, k);
      if (calls.length) box.append(promptsOf(item, index, calls, "Prompts"));
      beside.append(box);
    });
    item.anchors.forEach((found, k) => {
      if (!found) return;
      const more = el("details");
      const head = el("summary", `anchor ${index.anchors[k]}: ${shown(found[0])} `);
      head.append(grade(found[1]));
      more.append(head, reply(found[2]));
      if ("anchor" in index.prompts) {
        more.append(promptsOf(item, index, [[`anchor, asked of ${index.anchors[k]}`, "anchor", {}]], "Prompt"));
      }
      inside.append(more);
    });
    return inside;
  };

  let index = null;
  let matches = [];
  let drawn = 0;
  const draw = (count) => {
    for (const number of matches.slice(drawn, drawn + count)) {
      const [id, question, labeled, , phi] = index.items[number];
      const entry = el("details");
      const head = el("summary", null, "row");
      const named = el("span", null, "what");
      named.append(el("b", id), labeled ? " · labeled" : "", question ? ` · ${question}` : "");
      head.append(named);
      phi.forEach((value, k) => {
        const graded = value !== null;
        const word = graded ? (value === 1 ? "✓" : value === 0 ? "✗" : String(Math.round(value * 100) / 100)) : "–";
        const mark = el("span", word, `cell ${graded ? (value >= 0.5 ? "right" : "wrong") : "null"}`);
        mark.title = index.targets[k];
        mark.setAttribute("aria-hidden", "true");
        head.append(mark);
      });
      head.append(el("span", ` (${phi.map((v, k) => `${index.targets[k]} ${v === null ? "no φ" : v >= 0.5 ? "right" : "wrong"}`).join(", ")})`, "spoken"));
      entry.append(head);
      entry.addEventListener("toggle", async () => {
        if (!entry.open || entry.dataset.filled) return;
        entry.dataset.filled = "yes";
        const item = (await block(Math.floor(number / index.block)))[number % index.block];
        entry.append(detailsOf(item, index));
      });
      const place = el("li");
      place.append(entry);
      list.append(place);
    }
    drawn = Math.min(drawn + count, matches.length);
    const more = byId("more");
    more.hidden = drawn >= matches.length;
    more.textContent = `Show ${Math.min(100, matches.length - drawn)} more of ${matches.length - drawn}`;
  };

  const tests = {
    right: (phi) => phi !== null && phi >= 0.5,
    wrong: (phi) => phi !== null && phi < 0.5,
    ungraded: (phi) => phi === null,
    null: (_, flags) => flags & 1,
    swap: (_, flags) => flags & 2,
    against: (_, flags) => flags & 4,
  };
  const differ = (phi) => {
    const graded = phi.filter((p) => p !== null);
    return graded.length > 1 && graded.some((p) => p !== graded[0]);
  };
  const wanted = (entry, target, state, level) => {
    const [, , labeled, at, phi, flags] = entry;
    if (level && at !== level) return false;
    if (state === "labeled" || state === "unlabeled") return Boolean(labeled) === (state === "labeled");
    if (state === "differ") return differ(phi);
    const test = tests[state];
    if (!test) return true;
    return target === "" ? phi.some((p, k) => test(p, flags[k])) : Boolean(test(phi[Number(target)], flags[Number(target)]));
  };
  const words = () => byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text, all) => all.every((word) => text.includes(word));

  let turn = 0;
  const show = (found, note) => {
    matches = found;
    byId("count").textContent = `${matches.length} of ${index.items.length} items${note}`;
    list.replaceChildren();
    drawn = 0;
    draw(30);
  };
  const filter = async () => {
    const mine = ++turn;
    const all = words();
    const state = byId("state").value;
    const target = byId("target").value;
    const level = byId("level") ? byId("level").value : "";
    const kept = [];
    index.items.forEach((entry, number) => wanted(entry, target, state, level) && kept.push(number));
    if (!all.length || !byId("full").checked) {
      show(kept.filter((k) => has(`${index.items[k][0]} ${index.items[k][1]}`.toLowerCase(), all)), "");
      return;
    }
    const found = [];
    const groups = Map.groupBy ? Map.groupBy(kept, (k) => Math.floor(k / index.block)) : new Map();
    if (!Map.groupBy) kept.forEach((k) => groups.set(Math.floor(k / index.block), [...(groups.get(Math.floor(k / index.block)) || []), k]));
    for (const [number, members] of groups) {
      const items = await block(number);
      if (mine !== turn) return;
      for (const k of members) if (has(JSON.stringify(items[k % index.block]).toLowerCase(), all)) found.push(k);
      byId("count").textContent = `searching … ${found.length} found`;
    }
    show(found, " (full texts)");
  };

  let waiting = 0;
  const later = () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, byId("full").checked ? 300 : 60);
  };
  unpack("item-index").then((found) => {
    index = found;
    const heads = byId("item-heads");
    const narrow = index.targets.length > 6;
    for (const box of [heads, list]) {
      box.style.setProperty("--targets", index.targets.length);
      box.style.setProperty("--cell", narrow ? "2.6rem" : "5.5rem");
    }
    heads.append(el("span", "item", "what"));
    for (const name of index.targets) {
      const head = el("span", name, "cell");
      head.title = name;
      heads.append(head);
    }
    for (const id of ["search", "target", "state", "level", "full"]) if (byId(id)) byId(id).addEventListener("input", later);
    byId("more").addEventListener("click", () => draw(100));
    filter();
    root.dataset.ready = "yes";
  });
})();
