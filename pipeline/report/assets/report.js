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

  byId("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  const quote = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const csvOf = (table) =>
    [...table.rows].map((row) => [...row.cells].map((cell) => quote(cell.textContent)).join(",")).join("\n");
  for (const button of document.querySelectorAll(".csv")) {
    button.addEventListener("click", async () => {
      const text = csvOf(button.parentElement.querySelector("table"));
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "copied";
      } catch {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
        link.download = "table.csv";
        link.click();
      }
      setTimeout(() => (button.textContent = "CSV"), 1500);
    });
  }

  const unpack = async (id) => {
    const packed = Uint8Array.from(atob(byId(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  const blocks = new Map();
  const block = (number) => {
    if (!blocks.has(number)) blocks.set(number, unpack(`block-${number}`));
    return blocks.get(number);
  };

  const list = byId("items");
  if (!list) return;
  const shown = (value) => (value === null || value === undefined ? "null" : String(value));
  const pairs = (title, rows) => {
    const line = el("p");
    line.append(el("strong", `${title}: `), rows.map(([name, value]) => `${name} ${shown(value)}`).join(" · "));
    return line;
  };

  const answerOf = (name, found) => {
    const box = el("div");
    const head = el("h3", name);
    if (found === null) {
      box.append(head, el("p", "not asked"));
      return box;
    }
    const mark = found.phi === null ? "no φ" : found.phi >= 0.5 ? "right" : "wrong";
    head.append(" ", el("span", mark, found.phi === null ? "" : mark));
    box.append(head);
    box.append(pairs("answer", [["", found.answer], ["· confidence", found.confidence], ["·", found.outcome]]));
    if (found.nulls.length) box.append(pairs("null", found.nulls.map((why) => ["", why])));
    if (found.text !== null) box.append(el("pre", found.text));
    if (found.pairs.length) box.append(pairs("against anchors", found.pairs));
    if (found.scores.length) box.append(pairs("scores", found.scores));
    const said = Object.entries(found.chains);
    if (said.length) box.append(pairs("verdicts on chains", said));
    if (found.taus.length) box.append(pairs("τ", found.taus.map((t, j) => [`${j}:`, t])));
    return box;
  };

  let index = null;
  let matches = [];
  let drawn = 0;
  const draw = (count) => {
    for (const number of matches.slice(drawn, drawn + count)) {
      const [id, question, labeled] = index.items[number];
      const entry = el("details");
      entry.setAttribute("role", "listitem");
      entry.append(el("summary", `${id}${labeled ? " · labeled" : ""} · ${question}`));
      entry.addEventListener("toggle", async () => {
        if (!entry.open || entry.childElementCount > 1) return;
        const inside = el("div", null, "inside");
        entry.append(inside);
        const item = (await block(Math.floor(number / index.block)))[number % index.block];
        inside.append(el("pre", item.question));
        if (item.choices) inside.append(pairs("choices", item.choices.map((c, k) => [String.fromCharCode(65 + k), c])));
        inside.append(pairs("gold", [["", item.gold], ["· profile", item.profile]]));
        item.targets.forEach((found, k) => inside.append(answerOf(index.targets[k], found)));
      });
      list.append(entry);
    }
    drawn = Math.min(drawn + count, matches.length);
    byId("more").hidden = drawn >= matches.length;
  };

  const filter = () => {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const target = byId("target").value;
    const state = byId("state").value;
    const some = (values, test) => (target === "" ? values.some(test) : test(values[Number(target)]));
    matches = [];
    index.items.forEach(([id, question, labeled, phi, nulls], number) => {
      const text = `${id} ${question}`.toLowerCase();
      if (!words.every((word) => text.includes(word))) return;
      if (state === "right" && !some(phi, (p) => p !== null && p >= 0.5)) return;
      if (state === "wrong" && !some(phi, (p) => p !== null && p < 0.5)) return;
      if (state === "null" && !some(nulls, Boolean)) return;
      if (state === "labeled" && !labeled) return;
      matches.push(number);
    });
    byId("count").textContent = `${matches.length} of ${index.items.length} items`;
    list.replaceChildren();
    drawn = 0;
    draw(30);
  };

  unpack("item-index").then((found) => {
    index = found;
    for (const id of ["search", "target", "state"]) byId(id).addEventListener("input", filter);
    byId("more").addEventListener("click", () => draw(100));
    filter();
    root.dataset.ready = "yes";
  });
})();
