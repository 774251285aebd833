// Facets: what the pairs of an answer are told apart by, with counts, as boxes to tick.

import { make } from "./elements.js";

const TITLES = { label: "Label", verdict: "Verdict", origin: "Origin", division: "Division", duplicate: "Duplicates" };
const SHOWN = 12;

/** One group a facet. `facets`: name → [{ value, pairs }]; `chosen`: name → values; `changed` gets what is chosen then. */
export function facetBoxes(facets, chosen, changed) {
  return Object.entries(facets)
    .filter(([name, counts]) => counts.length > 1 || (chosen[name] || []).length)
    .map(([name, counts]) => group(name, counts, chosen, changed));
}

function group(name, counts, chosen, changed) {
  const ticked = chosen[name] || [];
  const first = counts.filter(({ value }, place) => place < SHOWN || ticked.includes(value));
  const toggle = (value, on) => {
    const values = on ? [...ticked, value] : ticked.filter((other) => other !== value);
    changed({ ...chosen, [name]: values });
  };
  const box = ({ value, pairs }) =>
    make(
      "label",
      { class: "choice" },
      make("input", { type: "checkbox", checked: ticked.includes(value), onchange: (event) => toggle(value, event.target.checked) }),
      make("span", {}, value),
      make("span", { class: "count" }, pairs.toLocaleString("en")),
    );
  const rest = counts.length - first.length;
  return make(
    "fieldset",
    { class: "choices" },
    make("legend", {}, TITLES[name] || name),
    ...first.map(box),
    rest > 0 && make("p", { class: "fact" }, `and ${rest} more`),
  );
}
