// How far the review is: decided pairs, agreement with the verdict, and the share of mismatched pairs with its interval.

import { make } from "../elements.js";

const SVG = "http://www.w3.org/2000/svg";
const number = (value) => value.toLocaleString("en");
const percent = (share) => `${Number((100 * share).toFixed(share < 0.0995 ? 1 : 0))} %`;

export function progressPanel() {
  const decided = make("dd", { class: "decided" });
  const people = make("p", { class: "fact" });
  const agreement = make("dd", { class: "agreement" });
  const differing = make("p", { class: "fact" });
  const share = make("dd", { class: "share" });
  const interval = make("p", { class: "fact interval" });
  const note = make("p", { class: "fact note" });
  const range = make("i", { class: "range" });
  const mark = make("i", { class: "tick" });
  const bar = make("div", { class: "estimate-bar", "aria-hidden": "true" }, range, mark);
  const trailBox = make("div", { class: "trail" });
  const trail = [];
  const element = make(
    "aside",
    { class: "progress box", "aria-label": "Progress" },
    make("dl", {}, make("dt", {}, "Decided"), decided),
    people,
    make("dl", {}, make("dt", {}, "Agree with the audit"), agreement),
    differing,
    make("dl", {}, make("dt", {}, "Mismatched in all pairs"), share),
    bar,
    interval,
    trailBox,
    note,
  );

  function show(state) {
    const { agreement: agreed, estimate } = state;
    decided.replaceChildren(number(state.decided), make("small", {}, ` of ${number(state.pairs)}`));
    people.textContent = state.people.filter((worker) => worker.decided).map((worker) => `${worker.person} ${number(worker.decided)}`).join(", ");
    agreement.textContent = agreed.pairs ? percent(agreed.agreed / agreed.pairs) : "–";
    differing.textContent = agreed.pairs ? `of ${number(agreed.pairs)}; it missed ${agreed.missed}, flagged ${agreed.mistaken} wrongly` : "";
    share.textContent = percent(estimate.share);
    interval.textContent = `between ${percent(estimate.low)} and ${percent(estimate.high)} (95 %), from ${number(estimate.drawn)} drawn pairs`;
    note.textContent = estimate.note;
    range.style.left = `${100 * estimate.low}%`;
    range.style.width = `${100 * (estimate.high - estimate.low)}%`;
    mark.style.left = `${100 * estimate.share}%`;
    if (!trail.length || trail.at(-1).decided !== state.decided) trail.push({ decided: state.decided, ...estimate });
    trailBox.replaceChildren(...(trail.length > 2 ? [curve(trail)] : []));
  }
  return { element, show };
}

/** The interval over the decisions of this visit. */
function curve(trail) {
  const first = Math.min(...trail.map((point) => point.decided));
  const span = Math.max(...trail.map((point) => point.decided)) - first || 1;
  const x = (point) => (200 * (point.decided - first)) / span;
  const most = Math.max(...trail.map((point) => point.high)) || 1;
  const y = (share) => 2 + 58 * (1 - share / most);
  const along = (list, end) => list.map((point) => `${x(point).toFixed(1)},${y(point[end]).toFixed(1)}`);
  const ordered = [...trail].sort((a, b) => a.decided - b.decided);
  const band = drawn("polygon", { class: "span", points: [...along(ordered, "high"), ...along([...ordered].reverse(), "low")].join(" ") });
  const line = drawn("polyline", { class: "line", points: along(ordered, "share").join(" ") });
  const ground = drawn("line", { class: "axis", x1: 0, y1: 60, x2: 200, y2: 60 });
  const top = drawn("text", { x: 200, y: 13, "text-anchor": "end" });
  top.textContent = percent(most);
  const said = `Share and interval after ${first} to ${first + span} decisions`;
  return drawn("svg", { viewBox: "0 0 200 61", role: "img", "aria-label": said }, band, line, ground, top);
}

function drawn(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
