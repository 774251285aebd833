// The shell: which view is shown. A view is a module with `mount(root, context)`, which fills an empty element once and
// returns { shown(rest), hidden() }: `rest` is what follows the view's name in the address, such as "?words=red".

import { get } from "./api.js";
import { errorBox, make } from "./elements.js";
import * as review from "./review.js";
import * as search from "./search.js";

const VIEWS = { search: { title: "Search", ...search }, review: { title: "Review", ...review } };
const FIRST = "search";

async function start() {
  const main = document.getElementById("view");
  let health;
  try {
    health = await get("/health");
  } catch (error) {
    main.replaceChildren(errorBox(error));
    return;
  }
  const context = { sources: health.sources, version: health.version };
  const mounted = {};
  let current = null;

  function show() {
    const [, name, rest] = /^#\/([a-z]*)(.*)$/.exec(location.hash) || [null, FIRST, ""];
    const view = VIEWS[name] ? name : FIRST;
    if (current !== null && current !== view) mounted[current].view.hidden();
    if (!mounted[view]) {
      const root = make("div", { class: `view-${view}` });
      main.append(root);
      mounted[view] = { root, view: VIEWS[view].mount(root, context) };
    }
    for (const [other, { root }] of Object.entries(mounted)) root.hidden = other !== view;
    for (const link of document.querySelectorAll("[data-view]")) {
      if (link.dataset.view === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${VIEWS[view].title} · truepair`;
    current = view;
    mounted[view].view.shown(rest);
  }

  window.addEventListener("hashchange", show);
  show();
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address holds the view
  document.getElementById("view").focus();
});
start();
