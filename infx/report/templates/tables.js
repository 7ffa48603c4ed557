const COLUMNS = ["output-throughput-per-gpu", "total-throughput-per-gpu", "interactivity-median", "ttft-p50", "ttft-p90",
  "tpot-p50", "e2el-p50", "acceptance-length", "mono-share", "prefix-hit-share", "usd-per-million-total-tokens",
  "energy-per-output-token"];

/* A table whose headings sort: columns are {title, word, value(row), cell(row)}. Empty values always come last. */
function sortable(table, columns, rows, classOf) {
  let sorted = { column: null, up: true };
  const head = el("tr");
  const body = el("tbody");
  const draw = () => {
    const order = rows.slice();
    if (sorted.column !== null) {
      const value = columns[sorted.column].value;
      order.sort((a, b) => {
        const [p, q] = [value(a), value(b)];
        const none = (v) => v === null || v === undefined;
        if (none(p) || none(q)) return none(p) - none(q);
        return (p < q ? -1 : p > q ? 1 : 0) * (sorted.up ? 1 : -1);
      });
    }
    body.replaceChildren(...order.map((row) => el("tr", { class: classOf(row) },
      ...columns.map((c) => el("td", { class: c.word || null }, c.cell(row))))));
    [...head.children].forEach((th, i) => th.setAttribute("aria-sort",
      i !== sorted.column ? "none" : sorted.up ? "ascending" : "descending"));
  };
  columns.forEach((c, i) => head.append(el("th", { class: c.word ? "word" : null, scope: "col" },
    el("button", { type: "button", onclick: () => {
      sorted = { column: i, up: sorted.column === i ? !sorted.up : true };
      draw();
    } }, c.title))));
  table.replaceChildren(el("thead", null, head), body);
  draw();
}

function pointTable(shown) {
  const rows = DATA.points.map((point, index) => ({ point, index })).filter((r) => shown.has(seriesOf(r.point)));
  const present = COLUMNS.filter((name) => DATA.points.some((p) => p.values[name]));
  const plain = (title, get, word) => ({ title, word, value: get, cell: (r) => { const v = get(r); return v === null || v === undefined ? "–" : String(v); } });
  const columns = [
    ...(DATA.runs.length > 1 ? [plain("run", (r) => r.point.run, "word")] : []),
    { title: "point", word: "word", value: (r) => r.point.short,
      cell: (r) => el("button", { type: "button", onclick: () => showPoint(r.index) }, r.point.short) },
    plain("c", (r) => r.point.concurrency), plain("GPUs", (r) => r.point.gpus),
    plain("start", (r) => r.point.start, "word"), plain("status", (r) => r.point.status, "word"),
    plain("n", (r) => r.point.counts.measured), plain("failed", (r) => r.point.counts.failed),
    ...present.map((name) => ({
      title: titled(name), value: (r) => (r.point.values[name] ? r.point.values[name][0] : null),
      cell: (r) => (r.point.values[name] ? format(name, r.point.values[name][0]) : "–"),
    })),
    plain("reasons", (r) => r.point.reasons.join("; ") || null, "long"),
  ];
  sortable($("points"), columns, rows, (r) => r.point.status);
}

function deltaTable(number) {
  const delta = DATA.deltas[number];
  $("delta-notes").replaceChildren(...delta.notes.map((note) => el("p", null, note)));
  const percent = (v) => (v === null || v === undefined ? "–" : (100 * v).toFixed(2) + " %");
  const columns = [
    { title: "point", word: "word", value: (c) => c.label, cell: (c) => c.label },
    { title: "metric", word: "word", value: (c) => c.metric, cell: (c) => titled(c.metric) },
    { title: delta.first, value: (c) => c.first, cell: (c) => format(c.metric, c.first) },
    { title: delta.second, value: (c) => c.second, cell: (c) => format(c.metric, c.second) },
    { title: "change", value: (c) => c.change, cell: (c) => percent(c.change) },
    { title: "improvement, 95 %", value: (c) => c.improvement,
      cell: (c) => (c.interval ? percent(c.interval[0]) + " … " + percent(c.interval[1]) : "–") },
    { title: "verdict", word: "word", value: (c) => c.verdict,
      cell: (c) => el("span", { class: c.verdict.replace(/ /g, "-") }, c.verdict) },
    { title: "why", word: "long", value: (c) => c.reasons.join("; "), cell: (c) => c.reasons.join("; ") || "–" },
  ];
  sortable($("delta-table"), columns, delta.cells, () => null);
}
