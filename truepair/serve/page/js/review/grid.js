// Many pairs at once: select some with the mouse or by keys, and judge them all.

import { announce, figure, make, picture } from "../elements.js";
import { VERDICTS } from "./words.js";
import { verdictButtons } from "./one.js";

export const SCREEN = 24;

/** `acts`: judge(verdict), undo(), screen() for the next screen, open(one) to look at one pair alone. */
export function gridOfPairs(acts) {
  const list = make("ul", { class: "grid", role: "listbox", "aria-multiselectable": "true", "aria-label": "Pairs" });
  const count = make("p", { class: "fact selected", role: "status" });
  const tools = make(
    "div",
    { class: "row walk" },
    make("button", { type: "button", class: "small", onclick: () => all() }, "Select all undecided ", make("kbd", { "aria-hidden": "true" }, "S")),
    make("button", { type: "button", class: "small", onclick: () => acts.screen() }, "Next screen ", make("kbd", { "aria-hidden": "true" }, "N")),
    count,
  );
  const element = make("section", { class: "many", "aria-label": "Grid of pairs" }, make("div", { class: "bar-of-grid" }, verdictButtons(acts), tools), list);
  const chosen = new Set();
  let items = [];
  let cells = [];
  let context = {};
  let at = 0;
  let anchor = 0;

  function show(shownItems, given) {
    const same = items.length === shownItems.length && items.every((one, place) => one === shownItems[place]);
    const focused = cells.includes(document.activeElement);
    items = shownItems;
    context = given;
    if (!same) {
      chosen.clear();
      at = anchor = 0;
    }
    cells = items.map(cell);
    list.replaceChildren(...cells);
    if (!items.length) list.replaceChildren(make("li", { role: "option", "aria-selected": "false", "aria-disabled": "true" }, "No pair is left here."));
    if (focused || !same) focus(at, focused);
    tell();
  }

  function cell(one, place) {
    const { pair } = one;
    const verdict = one.mine ? VERDICTS[one.mine.verdict] : null;
    const others = [...one.others].map(([name, said]) => `${name}: ${VERDICTS[said].name.toLowerCase()}`).join(", ");
    return make(
      "li",
      {
        role: "option",
        class: verdict ? "cell decided" : "cell",
        "aria-selected": String(chosen.has(one)),
        tabindex: place === at ? "0" : "-1",
        "data-image": pair.image,
        onclick: (event) => { toggle(place, event.shiftKey); focus(place, true); },
        ondblclick: () => acts.open(one),
      },
      picture(pair.picture, pair.image, 192, { alt: "" }),
      make("p", { class: "said" }, pair.caption ? make("q", {}, pair.caption) : make("span", { class: "soft" }, "no words")),
      verdict && make("p", { class: `${verdict.style} stamp` }, `${verdict.sign} ${verdict.name}`),
      others && make("p", { class: "fact" }, others),
      context.verdict && make("p", { class: "fact" }, `audit: ${pair.verdict || "nothing"}, p ${figure(pair.p_match, 2)}`),
    );
  }

  function focus(place, really = true) {
    if (!cells.length) return;
    at = Math.max(0, Math.min(place, cells.length - 1));
    cells.forEach((each, index) => { each.tabIndex = index === at ? 0 : -1; });
    if (really) cells[at].focus();
  }

  function toggle(place, through = false) {
    const on = !chosen.has(items[place]);
    const [first, last] = through ? [Math.min(anchor, place), Math.max(anchor, place)] : [place, place];
    for (let index = first; index <= last; index += 1) {
      if (on || through) chosen.add(items[index]);
      else chosen.delete(items[index]);
    }
    anchor = place;
    tell();
  }

  function all() {
    const open = items.filter((one) => !one.mine);
    const none = open.every((one) => chosen.has(one));
    chosen.clear();
    if (!none) open.forEach((one) => chosen.add(one));
    tell();
    announce(`${chosen.size} selected`);
  }

  function tell() {
    cells.forEach((each, place) => each.setAttribute("aria-selected", String(chosen.has(items[place]))));
    count.textContent = chosen.size ? `${chosen.size} selected` : "Nothing selected: keys judge the framed pair.";
  }

  /** Which pairs a verdict is about: those that are selected, else the one in focus. */
  function subject() {
    const found = items.filter((one) => chosen.has(one));
    return found.length ? found : items.slice(at, at + 1);
  }

  /** After a verdict: nothing is selected, and the next undecided pair is in focus. */
  function judged() {
    chosen.clear();
    const next = items.findIndex((one, place) => place > at && !one.mine);
    focus(next >= 0 ? next : Math.max(0, items.findIndex((one) => !one.mine)), true);
    tell();
  }

  /** What a key does here; false where it does nothing. */
  function key(event) {
    const columns = getComputedStyle(list).gridTemplateColumns.split(" ").length;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (step !== undefined) focus(at + step >= 0 && at + step < cells.length ? at + step : at);
    else if (event.key === "Enter") toggle(at, event.shiftKey);
    else if (event.key === "s" || event.key === "S") all();
    else return false;
    return true;
  }
  return { element, show, subject, judged, key, focus };
}
