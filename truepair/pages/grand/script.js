"use strict";
const runs = JSON.parse(document.getElementById("runs").textContent);
const columns = [
  { key: "method", title: "method", words: true },
  { key: "rsum", title: "test rSum", digits: 1 },
  { key: "noise", title: "noise", words: true },
  { key: "data", title: "data", words: true },
  { key: "engine", title: "engine", words: true },
  { key: "seed", title: "seed" },
  { key: "dev", title: "dev rSum", digits: 1 },
  { key: "auroc", title: "AUROC", digits: 3 },
  { key: "minutes", title: "minutes", digits: 1 },
  { key: "epochs", title: "epochs" },
  { key: "date", title: "date", words: true },
];
const differing = ["linear_algebra", "version"];
for (const key of differing)
  if (new Set(runs.map((run) => run[key])).size > 1) columns.push({ key, title: key.replace("_", " "), words: true });
const figures = ["rsum", "dev", "auroc", "minutes"];
const state = { sort: "rsum", down: true, means: false, open: new Set() };
const byId = (id) => document.getElementById(id);

function element(name, text, attributes = {}) {
  const made = document.createElementNS(attributes.xmlns || "http://www.w3.org/1999/xhtml", name);
  for (const [key, value] of Object.entries(attributes)) if (key !== "xmlns") made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function shown(value, digits) {
  return value === null || value === undefined ? "–" : digits === undefined ? String(value) : value.toFixed(digits);
}

function mean(values) {
  const known = values.filter((value) => value !== null);
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
}

function overSeeds(some) {
  const groups = new Map();
  for (const run of some) {
    const key = [run.method, run.data, run.engine, run.noise].join("\n");
    groups.set(key, [...(groups.get(key) || []), run]);
  }
  return [...groups.values()].map((group) => {
    const row = { ...group[0], seed: group.length + (group.length > 1 ? " seeds" : " seed"), members: group };
    for (const key of figures) row[key] = mean(group.map((run) => run[key]));
    for (const key of differing) row[key] = [...new Set(group.map((run) => run[key]))].sort().join(", ");
    return row;
  });
}

function chosen() {
  const wanted = ["data", "engine", "noise", "method"].map((key) => [key, byId("by-" + key).value]);
  const words = byId("words").value.toLowerCase().trim();
  const found = runs.filter(
    (run) =>
      wanted.every(([key, value]) => !value || run[key] === value) &&
      (run.method + " " + run.command).toLowerCase().includes(words),
  );
  const rows = state.means ? overSeeds(found) : found;
  const sign = state.down ? -1 : 1;
  return rows.sort((a, b) => {
    const [x, y] = [a[state.sort], b[state.sort]];
    if (x === null || y === null) return (x === null) - (y === null);
    return sign * (typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
  });
}

function curve(run) {
  const xmlns = "http://www.w3.org/2000/svg";
  const [width, height, left, bottom] = [420, 150, 40, 24];
  const svg = element("svg", undefined, { xmlns, viewBox: `0 0 ${width} ${height}`, role: "img" });
  svg.append(element("title", "dev rSum by epoch: " + run.curve.join(", "), { xmlns }));
  const high = Math.max(...run.curve, 1);
  const x = (epoch) => left + ((width - left - 12) * epoch) / Math.max(run.curve.length - 1, 1);
  const y = (value) => 10 + (height - bottom - 10) * (1 - value / high);
  for (const level of [0, high / 2, high]) {
    svg.append(element("line", undefined, { xmlns, x1: left, x2: width - 12, y1: y(level), y2: y(level), class: "gridline" }));
    svg.append(element("text", level.toFixed(0), { xmlns, x: left - 6, y: y(level) + 4, "text-anchor": "end" }));
  }
  svg.append(element("text", "epoch 1", { xmlns, x: left, y: height - 6 }));
  svg.append(element("text", "epoch " + run.curve.length, { xmlns, x: width - 12, y: height - 6, "text-anchor": "end" }));
  const points = run.curve.map((value, epoch) => x(epoch) + "," + y(value)).join(" ");
  svg.append(element("polyline", undefined, { xmlns, points, class: "line" }));
  if (run.best) {
    svg.append(element("circle", undefined, { xmlns, cx: x(run.best - 1), cy: y(run.curve[run.best - 1]), r: 4, class: "dot" }));
  }
  return svg;
}

function detail(run) {
  const box = element("div", undefined, { class: "detail" });
  const pre = element("pre");
  pre.append(element("code", run.command));
  box.append(element("p", `${run.method}, seed ${run.seed}, ${run.date}, truepair ${run.version}`, { class: "fact" }), pre);
  const recalls = run.recalls.map((value) => value.toFixed(1));
  box.append(
    element("p", `Test R@1, 5, 10: image → text ${recalls.slice(0, 3).join(", ")}; text → image ${recalls.slice(3).join(", ")}.`),
  );
  if (run.curve.length > 1) {
    const kept = "dev rSum by epoch; the dot is the epoch that was kept" + (run.warm_up ? ", one of the warm-up." : ".");
    box.append(element("p", kept, { class: "fact" }), curve(run));
  }
  return box;
}

function draw() {
  const rows = chosen();
  const head = element("tr");
  for (const column of columns) {
    const cell = element("th", undefined, { scope: "col", class: column.words ? "words" : "" });
    const active = column.key === state.sort;
    cell.setAttribute("aria-sort", active ? (state.down ? "descending" : "ascending") : "none");
    const button = element("button", column.title + (active ? (state.down ? " ↓" : " ↑") : ""), { type: "button" });
    button.addEventListener("click", () => {
      state.down = active ? !state.down : !column.words;
      state.sort = column.key;
      draw();
      byId("table").querySelectorAll("thead button")[columns.indexOf(column)].focus();
    });
    cell.append(button);
    head.append(cell);
  }
  byId("table").tHead.replaceChildren(head);
  const body = [];
  for (const row of rows) {
    const key = row.members ? row.members.map((run) => run.name).join() : row.name;
    const line = element("tr");
    for (const column of columns) {
      const cell = element(column.key === "method" ? "th" : "td", undefined, { class: column.words ? "words" : "" });
      if (column.key === "method") {
        const open = state.open.has(key);
        const button = element("button", (open ? "▾ " : "▸ ") + row.method, { type: "button", "aria-expanded": String(open) });
        button.addEventListener("click", () => {
          if (!state.open.delete(key)) state.open.add(key);
          draw();
        });
        cell.append(button);
      } else {
        const mark = column.key === "rsum" && (row.members || [row]).some((run) => run.warm_up) ? "‡" : "";
        cell.textContent = shown(row[column.key], column.digits) + mark;
      }
      line.append(cell);
    }
    body.push(line);
    if (state.open.has(key)) {
      const more = element("td", undefined, { colspan: String(columns.length), class: "words" });
      more.append(...(row.members || [row]).map(detail));
      const under = element("tr");
      under.append(more);
      body.push(under);
    }
  }
  byId("table").tBodies[0].replaceChildren(...body);
  byId("count").textContent = `${rows.length} ${state.means ? "means" : "runs"} of ${runs.length} runs shown`;
}

for (const key of ["data", "engine", "noise", "method"]) {
  const values = [...new Set(runs.map((run) => run[key]))];
  if (key === "noise") values.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  for (const value of values) byId("by-" + key).append(element("option", value, { value }));
  byId("by-" + key).addEventListener("change", draw);
}
byId("words").addEventListener("input", draw);
byId("means").addEventListener("change", (event) => {
  state.means = event.target.checked;
  state.open.clear();
  draw();
});
byId("clear").addEventListener("click", () => {
  for (const key of ["by-data", "by-engine", "by-noise", "by-method", "words"]) byId(key).value = "";
  draw();
});
draw();
