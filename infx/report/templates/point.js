/* A place for a small chart and the function that fills it: all places stand before any is filled, so that each
   chart is drawn at its final width. */
function smallChart(parent, data, xTitle, yTitle, label) {
  const box = el("div", { role: "img", "aria-label": label });
  parent.append(box);
  return () => Plotly.newPlot(box, [{ hoverinfo: "x+y", marker: { color: "#0072B2" }, line: { color: "#0072B2" }, ...data }], {
    margin: { l: 56, r: 8, t: 24, b: 40 }, showlegend: false, font: { size: 11 }, title: { text: label, font: { size: 12 } },
    xaxis: { title: { text: xTitle }, gridcolor: "#e6e6e6", zeroline: false, automargin: true },
    yaxis: { title: { text: yTitle }, rangemode: "tozero", gridcolor: "#e6e6e6", automargin: true }, bargap: 0,
  }, { responsive: true, displayModeBar: false });
}

function inside(point, parent) {
  const detail = point.detail;
  if (!detail) {
    parent.append(el("p", null, DATA.detailed ? "Nothing was measured here." : "Too many points for distributions in one page."));
    return;
  }
  if (detail.missing) parent.append(el("p", null, "No distributions: " + detail.missing + "."));
  const charts = el("div", { class: "charts" });
  parent.append(charts);
  const waiting = [];
  for (const [name, title] of [["ttft", "TTFT"], ["tpot", "TPOT"], ["e2el", "E2EL"]]) {
    const found = detail.histograms[name];
    if (!found) continue;
    const middle = found.counts.map((_, i) => found.low + (found.high - found.low) * (i + 0.5) / found.counts.length);
    waiting.push(smallChart(charts, { type: "bar", x: middle, y: found.counts }, "ms", "requests", title + " of measured requests"));
  }
  for (const [name, title, unit] of [["in-flight", "Requests in flight", "requests"], ["output-rate", "Output", "tok/s"]])
    if (detail.lines[name])
      waiting.push(smallChart(charts, { mode: "lines", x: detail.lines[name].map((_, i) => detail.seconds * (i + 0.5) / detail.lines[name].length), y: detail.lines[name] }, "s since the load began", unit, title));
  for (const [name, line] of Object.entries(detail.engine || {}))
    waiting.push(smallChart(charts, { mode: "lines", x: line.x, y: line.y }, "s since the window opened", "", "Engine: " + name.replace(/-/g, " ")));
  for (const fill of waiting) fill();
  if (!Object.keys(detail.engine || {}).length)
    parent.append(el("p", { class: "small" }, "This run keeps no time line of the engine's own gauges (running, waiting, KV, hit rate) or of power."));
}

function showPoint(index, jump = true) {
  const point = DATA.points[index];
  $("point").hidden = false;
  $("point-title").textContent = (DATA.runs.length > 1 ? point.run + " " : "") + point.short;
  const run = DATA.runs.find((r) => r.name === point.run);
  const body = $("point-body");
  body.replaceChildren();
  if (run.marks.length) body.append(el("p", { class: "banner" }, run.marks.map((m) => m.word + ": " + m.meaning).join(" · ")));
  const facts = [["key", point.key], ["status", point.status], ["why", point.reasons.join("; ") || "–"],
    ["start", point.start], ["node", point.node], ["image", point.image], ["digest", point.digest], ["engine", point.version],
    ["fingerprint", point.fingerprint], ["visits in this start", point.visits],
    ["requests", Object.entries(point.counts).map(([k, v]) => v + " " + k).join(", ")],
    ["failures", Object.entries(point.failures || {}).map(([k, v]) => v + " " + k).join(", ") || "none told"]];
  body.append(el("dl", null, ...facts.flatMap(([k, v]) => [el("dt", null, k), el("dd", null, v === null || v === undefined || v === "" ? "unknown" : String(v))])));
  inside(point, body);
  const table = el("table");
  const names = Object.keys(DATA.metrics).filter((n) => point.values[n] || point.empty[n] !== undefined);
  sortable(table, [
    { title: "metric", word: "word", value: (n) => DATA.metrics[n].title, cell: (n) => DATA.metrics[n].title },
    { title: "value", value: (n) => (point.values[n] ? point.values[n][0] : null), cell: (n) => format(n, point.values[n] ? point.values[n][0] : null) },
    { title: "unit", word: "word", value: (n) => DATA.metrics[n].unit, cell: (n) => DATA.metrics[n].unit || "" },
    { title: "95 % within the start", value: (n) => (point.values[n] ? point.values[n][1] : null),
      cell: (n) => (point.values[n] && point.values[n][1] !== null ? format(n, point.values[n][1]) + " … " + format(n, point.values[n][2]) : "–") },
    { title: "n", value: (n) => (point.values[n] ? point.values[n][3] : null), cell: (n) => String((point.values[n] && point.values[n][3]) || "–") },
    { title: "why there is none", word: "long", value: (n) => point.empty[n] || null, cell: (n) => point.empty[n] || "" },
  ], names, () => null);
  body.append(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Figures of this point" }, table));
  history.replaceState(null, "", "#point-" + index);
  if (jump) { $("point-title").scrollIntoView(); $("point-title").focus({ preventScroll: true }); }
}
