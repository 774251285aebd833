// What is reviewed, in which order, how it looks, and who reviews.

import { get } from "../api.js";
import { make } from "../elements.js";
import { facetBoxes } from "../facets.js";

const ORDERS = { gain: "Expected gain", worst: "Worst first", facet: "By facet" };
const ABOUT = {
  gain: "Drawn at random, most often where the audit is least sure: tells most of the share of mismatched pairs.",
  worst: "The least probable first: finds most mismatched pairs, tells little of the others.",
  facet: "Some pairs alone, the least probable first.",
};

/** `changed(values, keep)` gets other settings; `rename()` asks who reviews; `help()` shows the keys. */
export function controls({ audits, settings, changed, rename, help }) {
  const option = (value, text) => make("option", { value }, text);
  const audit = make("select", { onchange: () => changed({ source: audit.value, chosen: {}, words: "" }) }, ...audits.map((source) => option(source.name, source.name)));
  const order = make("select", { onchange: () => changed({ order: order.value }) }, ...Object.entries(ORDERS).map(([value, text]) => option(value, text)));
  const view = make("select", { onchange: () => changed({ view: view.value }) }, option("one", "One by one"), option("grid", "Grid"));
  const again = make("input", { type: "checkbox", onchange: () => changed({ again: again.checked }) });
  const verdict = make("input", { type: "checkbox", onchange: () => changed({ verdict: verdict.checked }, true) });
  const who = make("button", { type: "button", class: "who", onclick: rename });
  const about = make("p", { class: "fact about-order" });
  const facets = make("div", { class: "facets-of-review" });
  const wide = window.matchMedia("(min-width: 761px)");
  const more = make(
    "details",
    { class: "more", open: wide.matches },
    make("summary", {}, "More"),
    make("div", { class: "row" }, make("label", { class: "choice" }, verdict, "Show what the audit says"), make("label", { class: "choice" }, again, "Also what others decided"), make("span", { class: "spring" }), who, make("button", { type: "button", class: "help-button", "aria-label": "Help: keys", onclick: help }, "?")),
    about,
  );
  wide.addEventListener("change", () => { more.open = wide.matches; });
  const field = (title, control) => make("label", { class: "field" }, title, control);
  const element = make(
    "div",
    { class: "controls", role: "group", "aria-label": "What is reviewed" },
    make(
      "div",
      { class: "row" },
      audits.length > 1 && field("Audit", audit),
      field("Order", order),
      field("Look", view),
    ),
    more,
    facets,
  );
  let asked = "";

  async function showFacets() {
    const { source, order: by, chosen, words } = settings;
    facets.hidden = by !== "facet";
    const key = JSON.stringify([source, chosen, words]);
    if (by !== "facet" || key === asked) return;
    asked = key;
    const answer = await get("/pairs", { source, words, ...chosen, limit: 1 });
    if (key !== asked) return;
    const input = make("input", { type: "search", value: words, onchange: () => changed({ words: input.value.trim() }) });
    facets.replaceChildren(
      field("Words of the caption", input),
      ...facetBoxes(answer.facets, chosen, (now) => changed({ chosen: now })),
      make("p", { class: "fact" }, `${answer.total.toLocaleString("en")} pairs`),
    );
  }

  function show(person) {
    audit.value = settings.source;
    order.value = settings.order;
    view.value = settings.view;
    again.checked = settings.again;
    verdict.checked = settings.verdict;
    about.textContent = ABOUT[settings.order];
    who.hidden = !person;
    who.textContent = person;
    who.setAttribute("aria-label", `${person} reviews: change the name`);
    showFacets().catch(() => { asked = ""; });
  }
  return { element, show };
}

/** Who reviews; `named` gets the name. The form takes itself away. */
export function nameForm(named) {
  const input = make("input", { name: "person", required: true, maxlength: "200", autocomplete: "name" });
  const form = make(
    "form",
    {
      class: "box name-form",
      onsubmit: (event) => {
        event.preventDefault();
        const name = input.value.trim();
        if (!name) return input.focus();
        form.remove();
        named(name);
        return undefined;
      },
    },
    make("h2", {}, "Who reviews?"),
    make("p", {}, "Decisions are kept with a name, so that several people can review the same audit."),
    make("div", { class: "row" }, make("label", { class: "field grow" }, "Your name", input), make("button", { type: "submit", class: "main" }, "Begin")),
  );
  setTimeout(() => input.focus(), 0);
  return form;
}
