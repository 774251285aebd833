// Search: the sources, until there is something to search with.

import { make } from "./elements.js";

export function mount(root, context) {
  root.append(make("h1", {}, "Search"), ...context.sources.map(described));
  return { shown() {}, hidden() {} };
}

function described(source) {
  return make(
    "section",
    { class: "box", "aria-label": source.name },
    make("h2", {}, source.name),
    make("p", {}, `${source.kind} of ${source.pairs.toLocaleString("en")} pairs`),
    ...source.notices.map((notice) => make("p", { class: "notice" }, notice)),
  );
}
