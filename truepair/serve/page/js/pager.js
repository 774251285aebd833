// Paging: where one is, and the buttons to the pages before and after.

import { make } from "./elements.js";

export function pager(offset, size, total, turn) {
  if (!total) return make("p", { class: "soft" }, "Nothing found.");
  const first = Math.min(offset + 1, total);
  const last = Math.min(offset + size, total);
  const number = (value) => value.toLocaleString("en");
  return make(
    "nav",
    { class: "pager", "aria-label": "Pages" },
    make("button", { type: "button", disabled: offset <= 0, onclick: () => turn(Math.max(0, offset - size)) }, "Previous"),
    make("span", {}, `${number(first)}–${number(last)} of ${number(total)}`),
    make("button", { type: "button", disabled: last >= total, onclick: () => turn(offset + size) }, "Next"),
  );
}
