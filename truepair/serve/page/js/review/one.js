// One pair: its picture, its caption, what was thought of it, captions that are proposed, and the editor.

import { get } from "../api.js";
import { figure, make } from "../elements.js";
import { ready } from "./pictures.js";
import { VERDICTS, verdictLine } from "./words.js";

const WIDTH = 768;
const PROPOSED = 5;

/** `acts`: judge(verdict, more), undo(), edit(), look(step), next(). */
export function onePair(acts) {
  const frame = make("div", { class: "frame" });
  const words = make("div", { class: "words-of-pair" });
  const proposals = make("div", { class: "proposals" });
  const buttons = verdictButtons(acts);
  const walk = make(
    "div",
    { class: "row walk" },
    make("button", { type: "button", class: "small", "aria-label": "Look at the pair before", onclick: () => acts.look(-1) }, "← Before"),
    make("button", { type: "button", class: "small", "aria-label": "Look at the pair after", onclick: () => acts.look(1) }, "After →"),
    make("button", { type: "button", class: "small", onclick: () => acts.next() }, "Next undecided ", make("kbd", { "aria-hidden": "true" }, "N")),
    make("button", { type: "button", class: "small", onclick: () => acts.edit() }, "Edit caption ", make("kbd", { "aria-hidden": "true" }, "E")),
  );
  const element = make("section", { class: "one", "aria-label": "Pair", tabindex: "-1" }, frame, make("div", { class: "beside" }, words, buttons, walk, proposals));
  let shown = null;

  function show(one, { person, verdict }) {
    shown = one;
    const { pair } = one;
    frame.replaceChildren(ready(pair, WIDTH) || make("div", { class: "pic nopic" }, make("b", {}, pair.image), "no picture at hand"));
    words.replaceChildren(
      make("p", { class: "caption-shown" }, pair.caption ? make("q", {}, pair.caption) : make("span", { class: "soft" }, "no words")),
      one.mine ? verdictLine(person, one.mine) : make("p", { class: "verdict-line soft" }, "Not decided by you"),
      ...[...one.others].map(([name, said]) => verdictLine(name, { verdict: said })),
      ...(verdict ? [auditSays(pair)] : []),
    );
    for (const button of buttons.querySelectorAll("[data-verdict]")) {
      button.setAttribute("aria-pressed", String(one.mine?.verdict === button.dataset.verdict));
    }
    showProposals(one);
    more(one);
  }

  function showProposals(one) {
    const some = one.pair.proposed.slice(0, PROPOSED);
    proposals.replaceChildren(
      ...(some.length ? [make("h2", {}, "Captions that may fit better"), make("ol", {}, ...some.map((proposal, place) => proposed(one, proposal, place)))] : []),
    );
  }

  function proposed(one, proposal, place) {
    const taken = one.mine?.partner === proposal.pair_id;
    return make(
      "li",
      {},
      make(
        "button",
        { type: "button", "aria-pressed": String(taken), onclick: () => acts.judge("mismatch", { partner: proposal.pair_id }) },
        make("kbd", { "aria-hidden": "true" }, String(place + 1)),
        make("span", {}, proposal.caption),
      ),
    );
  }

  /** Where few captions are proposed, those that are found for the picture. */
  async function more(one) {
    if (one.searched || !acts.searches || one.pair.proposed.length >= PROPOSED) return;
    one.searched = true;
    try {
      const answer = await get("/search", { source: acts.source, pair: one.pair.pair_id, find: "captions", limit: PROPOSED + 5 });
      const known = new Set([one.pair.caption, ...one.pair.proposed.map((proposal) => proposal.caption)]);
      for (const { pair } of answer.results[0].hits) {
        if (!known.has(pair.caption) && one.pair.proposed.length < PROPOSED) {
          known.add(pair.caption);
          one.pair.proposed.push({ caption: pair.caption, pair_id: pair.pair_id, fit: null });
        }
      }
    } catch {
      return; // what is proposed already stays
    }
    if (shown === one) showProposals(one);
  }

  function edit(one) {
    const area = make("textarea", { rows: "3", "aria-label": "The caption that is right", maxlength: "10000" });
    area.value = one.mine?.caption || one.pair.caption;
    const save = (verdict) => {
      const caption = area.value.trim();
      if (!caption || caption === one.pair.caption) return area.focus();
      acts.edited();
      acts.judge(verdict, { caption });
      return undefined;
    };
    const form = make(
      "form",
      { class: "editor", onsubmit: (event) => { event.preventDefault(); save("mismatch"); } },
      area,
      make(
        "div",
        { class: "row" },
        make("button", { type: "submit", class: "main" }, "Save; it did not match ", make("kbd", { "aria-hidden": "true" }, "Enter")),
        make("button", { type: "button", onclick: () => save("match") }, "Save; it matched, this is better"),
        make("button", { type: "button", onclick: () => acts.edited() }, "Cancel ", make("kbd", { "aria-hidden": "true" }, "Esc")),
      ),
    );
    area.addEventListener("keydown", (event) => {
      if (event.isComposing) return; // Enter ends a word of an input method, not the caption
      if (event.key === "Enter" && !event.shiftKey) {
        event.preventDefault();
        save("mismatch");
      } else if (event.key === "Escape") {
        acts.edited();
      }
    });
    words.replaceChildren(form);
    area.focus();
    area.select();
  }
  return { element, show, edit };
}

/** Judge, and take back: the same buttons for one pair and for a grid. */
export function verdictButtons(acts) {
  const judge = Object.entries(VERDICTS).map(([verdict, { name, shown, sign }]) =>
    make(
      "button",
      { type: "button", "data-verdict": verdict, class: `verdict ${verdict}`, onclick: () => acts.judge(verdict) },
      make("span", { "aria-hidden": "true" }, sign),
      ` ${name} `,
      make("kbd", { "aria-hidden": "true" }, shown),
    ),
  );
  const undo = make("button", { type: "button", class: "verdict", onclick: () => acts.undo() }, make("span", { "aria-hidden": "true" }, "↶"), " Undo ", make("kbd", { "aria-hidden": "true" }, "⌫"));
  return make("div", { class: "verdicts", role: "group", "aria-label": "Verdict" }, ...judge, undo);
}

function auditSays(pair) {
  const wrong = pair.verdict === "mismatch";
  return make(
    "p",
    { class: "fact audit-says" },
    "The audit: ",
    make("span", { class: wrong ? "wrong" : "right" }, pair.verdict || "nothing"),
    `, probability of a match ${figure(pair.p_match, 2)}`,
    pair.reason ? `. ${pair.reason}` : "",
  );
}
