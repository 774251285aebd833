// What verdicts and keys are called.

import { make } from "../elements.js";

export const VERDICTS = {
  match: { name: "Match", sign: "✓", key: "a", shown: "A", style: "right" },
  mismatch: { name: "Mismatch", sign: "✗", key: "x", shown: "X", style: "wrong" },
  unsure: { name: "Unsure", sign: "?", key: " ", shown: "Space", style: "soft" },
};

const KEYS = [
  ["A", "match"],
  ["X", "mismatch"],
  ["Space", "unsure"],
  ["Backspace", "take back what was judged last in this tab"],
  ["← →", "look at the pair before or after, without judging; in the grid, all four"],
  ["N", "next undecided pair; in the grid, next screen"],
  ["E", "write the caption that is right"],
  ["1 – 5", "take a proposed caption"],
  ["Enter", "in the grid: select or not; with Shift, all from the last one"],
  ["S", "in the grid: select all that are undecided, or none"],
  ["G", "one by one, or as a grid"],
  ["V", "show or hide what the audit says"],
  ["?", "this help"],
];

/** What somebody thinks, as a line. */
export function verdictLine(person, { verdict, caption, partner }) {
  const { name, sign, style } = VERDICTS[verdict];
  const more = caption ? make("span", {}, "; caption written anew: ", make("q", {}, caption)) : partner && make("span", {}, "; a proposed caption was taken");
  return make("p", { class: "verdict-line" }, make("span", { class: `${style} mark`, "aria-hidden": "true" }, sign), `${person}: ${name.toLowerCase()}`, more);
}

const WHY_LEFT = {
  changed: "decided anew elsewhere since, and that stands",
  "taken back": "taken back elsewhere already",
  unknown: "never kept by the service",
};

/** What was not taken back and why, in sentences; `left`: the answers about these decisions. */
export function leftWords(left) {
  return Object.entries(WHY_LEFT).map(([why, words]) => {
    const count = left.filter((each) => each.why === why).length;
    return count ? `${count === 1 ? "1 decision" : `${count} decisions`} not taken back: ${words}.` : "";
  }).filter(Boolean).join(" ");
}

export function helpDialog() {
  const rows = KEYS.map(([key, does]) => make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, does)));
  const close = make("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const dialog = make(
    "dialog",
    { class: "help", "aria-labelledby": "help-title" },
    make("h2", { id: "help-title" }, "Keys"),
    make("dl", { class: "keys" }, ...rows),
    make("p", { class: "fact" }, "After a verdict the next undecided pair is shown. Decisions are kept beside the audit, with your name."),
    close,
  );
  return dialog;
}
