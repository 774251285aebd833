// Search: words or a picture in, images or captions out, while one types; of several sources side by side.

import { get, send } from "./api.js";
import { announce, errorBox, make } from "./elements.js";
import { facetBoxes } from "./facets.js";
import { column } from "./hits.js";
import { pager } from "./pager.js";

const PAGE = 24;
const PAUSE = 150; // milliseconds without a key, before words are looked for
const FACETS = ["label", "verdict", "origin", "division", "duplicate"];

export function mount(root, context) {
  const view = new SearchView(root, context);
  return { shown: (rest) => view.shown(rest), hidden: () => view.stop() };
}

/** The state of the view, kept in the address but for a picture from outside. */
function stateOf(rest, context) {
  const given = new URLSearchParams(rest.replace(/^\?/, ""));
  const known = context.sources.filter((source) => source.search).map((source) => source.name);
  const asked = given.getAll("source").filter((name) => known.includes(name));
  return {
    text: given.get("text") || "",
    pair: given.get("pair"),
    side: given.get("side") === "caption" ? "caption" : "image",
    find: given.get("find") || "",
    source: asked.length ? asked : known.slice(0, 1),
    offset: Math.max(0, Number.parseInt(given.get("offset") || "0", 10) || 0),
    chosen: Object.fromEntries(FACETS.map((name) => [name, given.getAll(name)])),
  };
}

class SearchView {
  constructor(root, context) {
    this.context = context;
    this.picture = null; // a File from outside
    this.pending = null;
    this.timer = null;
    this.state = stateOf("", context);
    this.build(root);
  }

  build(root) {
    const { sources } = this.context;
    const able = sources.filter((source) => source.search);
    this.words = make("input", {
      id: "words", type: "search", autocomplete: "off", spellcheck: "false", maxlength: "2000",
      placeholder: "two dogs in the snow", oninput: () => this.typed(),
    });
    this.file = make("input", {
      id: "picture-file", class: "unseen", type: "file", accept: "image/*",
      onchange: () => this.file.files.length && this.take(this.file.files[0]),
    });
    this.findSelect = make(
      "select",
      { id: "find", onchange: () => this.change({ find: this.findSelect.value, offset: 0 }) },
      make("option", { value: "" }, "automatic"),
      make("option", { value: "images" }, "images"),
      make("option", { value: "captions" }, "captions"),
    );
    this.chip = make("div", { class: "chip" });
    this.sourceBoxes = make("fieldset", { class: "choices", hidden: able.length < 2 }, make("legend", {}, "Side by side"));
    for (const source of able) this.sourceBoxes.append(this.sourceBox(source));
    this.facets = make("div", { class: "facets" });
    this.results = make("div", { class: "columns" });
    this.pages = make("div", {});
    const form = make(
      "form",
      { class: "row asking", role: "search", "aria-label": "Search", onsubmit: (event) => this.submitted(event) },
      make("div", { class: "field grow" }, make("label", { for: "words" }, "Words to look for"), this.words),
      make("div", { class: "field" }, make("label", { for: "find" }, "Look for"), this.findSelect),
      make("div", { class: "pick" }, this.file, make("label", { for: "picture-file", class: "button" }, "Pick a picture")),
    );
    const notices = sources.flatMap((source) => [
      ...source.notices.map((notice) => `${source.name}: ${notice}`),
      ...(source.why_not ? [`${source.name} cannot be searched: ${source.why_not}.`] : []),
    ]);
    root.append(
      make("h1", { class: "unseen" }, "Search"),
      form,
      ...notices.map((notice) => make("p", { class: "notice" }, notice)),
      this.chip,
      make("div", { class: "side-and-main" }, make("div", { class: "side" }, this.sourceBoxes, this.facets), make("div", {}, this.results, this.pages)),
    );
    root.addEventListener("dragover", (event) => {
      event.preventDefault();
      root.classList.add("dropping");
    });
    root.addEventListener("dragleave", () => root.classList.remove("dropping"));
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      root.classList.remove("dropping");
      if (event.dataTransfer.files.length) this.take(event.dataTransfer.files[0]);
    });
  }

  sourceBox(source) {
    const box = make("input", { type: "checkbox", value: source.name, onchange: () => this.sourcesChanged() });
    return make("label", { class: "choice" }, box, make("span", {}, source.name));
  }

  sourcesChanged() {
    const names = [...this.sourceBoxes.querySelectorAll("input:checked")].map((box) => box.value);
    this.change({ source: names.length ? names : this.state.source.slice(0, 1), offset: 0 });
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.submitted(), PAUSE);
  }

  submitted(event = null) {
    event?.preventDefault();
    clearTimeout(this.timer);
    this.picture = null;
    this.change({ text: this.words.value, pair: null, offset: 0, find: this.state.pair ? "" : this.state.find });
  }

  /** Look for what is like a picture from outside. */
  take(file) {
    this.picture = file;
    this.file.value = "";
    this.words.value = "";
    this.change({ text: "", pair: null, offset: 0, find: "" }, true);
  }

  /** Look for what is like the image or the caption of a pair. */
  like(source, pair, side, find) {
    this.picture = null;
    this.change({ text: "", pair, side, find, offset: 0 });
    this.words.value = "";
    window.scrollTo({ top: 0 });
  }

  change(changes, again = false) {
    this.state = { ...this.state, ...changes };
    const { chosen, ...rest } = this.state;
    const values = new URLSearchParams();
    for (const [name, value] of [...Object.entries(rest), ...Object.entries(chosen)]) {
      const plain = (name === "offset" && !value) || (name === "side" && !rest.pair);
      for (const each of Array.isArray(value) ? value : [value]) if (each && !plain) values.append(name, each);
    }
    const address = `#/search?${values}`;
    if (location.hash === address) again && this.ask();
    else location.hash = address; // which shows the view again
  }

  shown(rest) {
    this.state = stateOf(rest, this.context);
    if (this.state.text || this.state.pair) this.picture = null;
    if (document.activeElement !== this.words) this.words.value = this.state.text;
    this.findSelect.value = this.state.find;
    for (const box of this.sourceBoxes.querySelectorAll("input")) box.checked = this.state.source.includes(box.value);
    this.ask();
  }

  stop() {
    clearTimeout(this.timer);
    this.pending?.abort();
  }

  async ask() {
    this.pending?.abort();
    this.showQuery();
    const { text, pair, side, find, source, offset, chosen } = this.state;
    if (!source.length || !(text.trim() || pair || this.picture)) {
      this.results.replaceChildren(this.welcome());
      this.facets.replaceChildren();
      this.pages.replaceChildren();
      return;
    }
    const pending = (this.pending = new AbortController());
    const waiting = setTimeout(() => this.results.setAttribute("aria-busy", "true"), 300);
    try {
      const found = await this.request({ text: text.trim(), pair, side, find, source, offset, limit: PAGE, ...chosen }, pending.signal);
      if (pending === this.pending) this.show(found.results);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.type === "index-building" && pending === this.pending) {
        this.results.replaceChildren(make("p", { class: "notice" }, "The index is being built …"));
        this.timer = setTimeout(() => this.ask(), 1000);
        return;
      }
      this.results.replaceChildren(errorBox(error));
      this.pages.replaceChildren();
    } finally {
      clearTimeout(waiting);
      if (pending === this.pending) this.results.removeAttribute("aria-busy");
    }
  }

  request(values, signal) {
    if (!this.picture) return get("/search", { ...values, side: values.pair ? values.side : "" }, signal);
    const form = new FormData();
    form.append("picture", this.picture);
    return send("/search/picture", form, { ...values, text: "", pair: "", side: "" }, signal);
  }

  show(results) {
    const like = (...query) => this.like(...query);
    this.results.replaceChildren(...results.map((result) => column(result, results.length > 1, like)));
    const first = results.find((result) => !result.notice) || results[0];
    this.facets.replaceChildren(
      ...facetBoxes(first.facets, this.state.chosen, (chosen) => this.change({ chosen, offset: 0 })),
    );
    const total = Math.max(...results.map((result) => result.total));
    this.pages.replaceChildren(pager(this.state.offset, PAGE, total, (offset) => this.turn(offset)));
    announce(total ? `${first.find}: ${this.state.offset + 1} to ${Math.min(total, this.state.offset + PAGE)} of ${total}` : "Nothing found");
  }

  turn(offset) {
    this.change({ offset }, true);
    this.results.scrollIntoView({ block: "start" });
  }

  /** What is looked for, where the words do not say it. */
  showQuery() {
    this.chip.replaceChildren();
    if (this.shownPicture) URL.revokeObjectURL(this.shownPicture);
    this.shownPicture = null;
    const clear = make("button", { type: "button", onclick: () => this.clear() }, "Clear");
    if (this.picture) {
      this.shownPicture = URL.createObjectURL(this.picture);
      const image = make("img", { class: "pic small", src: this.shownPicture, alt: "" });
      this.chip.append(image, make("span", {}, `Like your picture ${this.picture.name}`), clear);
    } else if (this.state.pair) {
      const what = this.state.side === "image" ? "the image" : "the caption";
      this.chip.append(make("span", {}, `Like ${what} of ${this.state.pair}`), clear);
    }
  }

  clear() {
    this.picture = null;
    this.change({ text: "", pair: null, find: "", offset: 0 }, true);
    this.words.focus();
  }

  welcome() {
    const able = this.context.sources.filter((source) => source.search);
    if (!able.length) return make("p", {}, "None of the sources can be searched.");
    const pairs = able.map((source) => `${source.name} (${source.pairs.toLocaleString("en")} pairs)`).join(", ");
    const words = able.some((source) => source.words) ? "Type words to see images. " : "";
    return make("p", { class: "lead" }, `${words}Drop a picture here, or pick one, to see captions that fit. Searched: ${pairs}.`);
  }
}
