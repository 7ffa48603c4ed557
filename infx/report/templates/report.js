const shown = new Set(DATA.series.map((s) => s.label));
const hasDots = (x, y) => Object.keys((DATA.panels[x + "|" + y] || { dots: {} }).dots).length > 0;

function draw() {
  const [x, y] = [$("x-axis").value, $("y-axis").value];
  drawChart(x, y, shown, {
    logX: $("log-x").checked, logY: $("log-y").checked, labels: $("labels").checked,
    frontier: $("frontier").checked, bars: $("bars").checked,
  });
}

function fill(select, names, usable) {
  for (const name of names) {
    const option = el("option", { value: name }, titled(name) + (usable(name) ? "" : " – no figures"));
    select.append(option);
  }
  select.value = names.find(usable) || names[0];
  select.addEventListener("change", draw);
}

fill($("y-axis"), DATA.y_axes, (y) => DATA.x_axes.some((x) => hasDots(x, y)));
fill($("x-axis"), DATA.x_axes, (x) => DATA.y_axes.some((y) => hasDots(x, y)));
for (const id of ["log-x", "log-y", "labels", "frontier", "bars"]) $(id).addEventListener("change", draw);
if (DATA.points.length > 60) $("labels").checked = false;

const boxes = DATA.series.map((series) => {
  const box = el("input", { type: "checkbox" });
  box.checked = true;
  box.addEventListener("change", () => { box.checked ? shown.add(series.label) : shown.delete(series.label); draw(); pointTable(shown); });
  const marks = DATA.runs.find((r) => r.name === series.run).marks.map((m) => m.word.toLowerCase()).join(", ");
  $("series").append(el("label", null, box, el("span", { class: "swatch", style: "background:" + series.colour }),
    series.label + (marks ? " (" + marks + ")" : "") + " · " + series.marker.replace("-", " ")));
  return [box, series.label];
});
function setAll(on) {
  for (const [box, label] of boxes) { box.checked = on; on ? shown.add(label) : shown.delete(label); }
  draw(); pointTable(shown);
}
$("all").addEventListener("click", () => setAll(true));
$("none").addEventListener("click", () => setAll(false));

if (DATA.deltas.length) {
  DATA.deltas.forEach((d, i) => $("delta").append(el("option", { value: i }, d.second + " against " + d.first)));
  $("delta").addEventListener("change", () => deltaTable(Number($("delta").value)));
  deltaTable(0);
}
pointTable(shown);
draw();
$("chart").on("plotly_click", (event) => {
  const place = event.points.find((p) => p.customdata !== undefined);
  if (place) showPoint(place.customdata);
});
const wanted = /^#point-(\d+)$/.exec(location.hash);
if (wanted && DATA.points[Number(wanted[1])]) showPoint(Number(wanted[1]));
