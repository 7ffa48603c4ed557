"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
for (const [i, point] of DATA.points.entries()) {
  point.values = {};
  for (const [name, [value, low, high, n]] of Object.entries(DATA.columns))
    if (value !== null && value[i] !== null)
      point.values[name] = [value[i], low && low[i], high && high[i], n && n[i]];
  for (const name of Object.keys(point.empty)) point.empty[name] = DATA.texts[point.empty[name]];
}
const SATURATED = new Set(DATA.saturated);
const PLACES = ["top right", "bottom left", "bottom right", "top left"];
const $ = (id) => document.getElementById(id);

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "onclick") node.addEventListener("click", value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

function format(name, value) {
  if (value === null || value === undefined) return "–";
  if (DATA.metrics[name] && DATA.metrics[name].share) return (100 * value).toFixed(1) + " %";
  const size = Math.abs(value);
  const digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.1 || size === 0 ? 3 : 5;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

const titled = (name) => {
  const m = DATA.metrics[name];
  return m ? m.title + (m.unit ? " (" + m.unit + ")" : "") : name;
};
const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;");

function hover(point, x, y) {
  const lines = [
    "<b>" + escaped(DATA.runs.length > 1 ? point.run + " " + point.short : point.short) + "</b>" +
      (SATURATED.has(DATA.points.indexOf(point)) ? " · saturated" : ""),
    ...[y, x].map((name) => {
      const [value, low, high, n] = point.values[name];
      const range = low === null ? "" : " [" + format(name, low) + ", " + format(name, high) + "]";
      return escaped(titled(name)) + ": " + format(name, value) + range + (n ? " n=" + n : "");
    }),
    point.gpus + " GPUs · start " + escaped(point.start) + " · " + escaped(point.node),
    "image " + escaped(point.image).slice(0, 70),
  ];
  for (const name of ["ttft-p50", "tpot-p50", "acceptance-length", "prefix-hit-share"])
    if (name !== x && name !== y && point.values[name]) lines.push(escaped(titled(name)) + ": " + format(name, point.values[name][0]));
  const run = DATA.runs.find((r) => r.name === point.run);
  if (run.marks.length) lines.push("<b>" + run.marks.map((m) => m.word).join(" · ") + "</b>");
  return lines.join("<br>");
}

function bars(points, name, colour) {
  const ends = points.map((p) => p.values[name]);
  if (!ends.some((e) => e[1] !== null)) return undefined;
  return {
    type: "data", symmetric: false, thickness: 1, width: 2, color: colour,
    array: ends.map((e) => (e[2] === null ? 0 : e[2] - e[0])),
    arrayminus: ends.map((e) => (e[1] === null ? 0 : e[0] - e[1])),
  };
}

function traces(x, y, shown, options) {
  const panel = DATA.panels[x + "|" + y];
  const made = [];
  const best = new Set(Object.values(panel.frontier).flat());
  const near = new Set(panel.near);
  if (options.frontier)
    for (const [group, indices] of Object.entries(panel.frontier)) {
      const visible = DATA.series.some((s) => s.group === group && shown.has(s.label));
      if (!visible || indices.length < 2) continue;
      made.push({
        x: indices.map((i) => DATA.points[i].values[x][0]), y: indices.map((i) => DATA.points[i].values[y][0]),
        mode: "lines", hoverinfo: "skip", showlegend: false, name: "frontier " + group,
        line: { shape: DATA.metrics[x].better === "higher" ? "vh" : "hv", color: "#9a9a9a", width: 1 },
      });
    }
  for (const series of DATA.series) {
    const indices = (panel.dots[series.label] || []);
    if (!shown.has(series.label) || !indices.length) continue;
    const points = indices.map((i) => DATA.points[i]);
    const guide = points.filter((p) => p.chosen);
    made.push({
      x: guide.map((p) => p.values[x][0]), y: guide.map((p) => p.values[y][0]), mode: "lines", hoverinfo: "skip",
      showlegend: false, name: series.label + " guide", line: { color: series.colour, width: 1.2, dash: "dot" },
    });
    made.push({
      x: points.map((p) => p.values[x][0]), y: points.map((p) => p.values[y][0]), name: series.label,
      mode: options.labels ? "markers+text" : "markers", textposition: PLACES[DATA.series.indexOf(series) % PLACES.length],
      text: points.map((p, i) => (p.chosen ? p.concurrency + (SATURATED.has(indices[i]) ? " ◂sat." : "") : "")),
      textfont: { color: series.ink, size: 11 }, customdata: indices,
      hovertext: points.map((p) => hover(p, x, y)), hoverinfo: "text",
      error_x: options.bars ? bars(points, x, series.colour) : undefined, error_y: options.bars ? bars(points, y, series.colour) : undefined,
      marker: {
        symbol: indices.map((i) => series.marker + (best.has(i) || near.has(i) ? "" : "-open")),
        color: indices.map((i) => (near.has(i) ? series.colour + "55" : series.colour)),
        size: points.map((p) => (p.chosen ? 9 : 6)), line: { width: 1.5, color: series.colour },
      },
    });
  }
  return made;
}

function drawChart(x, y, shown, options) {
  const made = traces(x, y, shown, options);
  const arrow = { higher: " · better →", lower: " · ← better", neither: "" }[DATA.metrics[x] ? DATA.metrics[x].better : "neither"];
  const layout = {
    margin: { l: 70, r: 16, t: 12, b: 56 }, hovermode: "closest", showlegend: false, font: { size: 12 },
    paper_bgcolor: "#fff", plot_bgcolor: "#fff", hoverlabel: { align: "left", bgcolor: "#fff", font: { color: "#111" } },
    xaxis: { title: { text: titled(x) + arrow }, type: options.logX ? "log" : "linear", rangemode: "tozero", gridcolor: "#e6e6e6", zeroline: false, automargin: true },
    yaxis: { title: { text: titled(y) }, type: options.logY ? "log" : "linear", rangemode: "tozero", gridcolor: "#e6e6e6", zeroline: false, automargin: true },
    annotations: [],
  };
  const words = DATA.banners.map((b) => b.split(":")[0]).join(" · ");
  if (words)
    layout.annotations.push({
      text: words, xref: "paper", yref: "paper", x: 0.5, y: 0.5, showarrow: false,
      textangle: -20, font: { size: Math.min(54, 900 / words.length, $("chart").clientWidth * 1.2 / words.length), color: "rgba(110,110,110,0.16)" },
    });
  if (!made.length)
    layout.annotations.push({ text: "no shown point has both figures", xref: "paper", yref: "paper", x: 0.5, y: 0.6, showarrow: false });
  Plotly.react("chart", made, layout, { responsive: true, displaylogo: false, displayModeBar: false });
  const drawn = new Set(made.flatMap((t) => t.customdata || []));
  const good = DATA.points.filter((p) => p.chosen && p.status === "ok" && shown.has(seriesOf(p)));
  const without = good.filter((p) => !drawn.has(DATA.points.indexOf(p)));
  const why = [...new Set(without.map((p) => (p.empty[y] || p.empty[x] || "not in the result")))];
  $("chart-note").textContent = without.length
    ? without.length + " of " + good.length + " good points are not in this chart: " + why.join("; ") : "";
}

function seriesOf(point) {
  const found = DATA.series.find((s) => s.run === point.run && s.arm === point.arm && s.axes === point.axes);
  return found ? found.label : "";
}
