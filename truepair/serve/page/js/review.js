// Review: pairs one by one or as a grid, judged by keys, mouse or touch.

import { announce, errorBox, make } from "./elements.js";
import { controls, nameForm } from "./review/controls.js";
import { Session } from "./review/session.js";
import { waitingElsewhere } from "./review/outbox.js";
import { VERDICTS, helpDialog, leftWords } from "./review/words.js";
import { SCREEN, gridOfPairs } from "./review/grid.js";
import { onePair } from "./review/one.js";
import { progressPanel } from "./review/progress.js";
import { ready } from "./review/pictures.js";

const BY_KEY = Object.fromEntries(Object.entries(VERDICTS).map(([verdict, { key }]) => [key, verdict]));
const AHEAD = 6;

export function mount(root, context) {
  const audits = context.sources.filter((source) => source.kind === "audit");
  root.append(make("h1", {}, "Review"));
  if (!audits.length) {
    root.append(make("p", { class: "notice" }, "Nothing to review: audits are reviewed, and none is served. truepair audit makes one; serve its folder, alone or beside runs."));
    return { shown() {}, hidden() {} };
  }
  const settings = { source: audits[0].name, order: "gain", view: "one", again: false, verdict: false, chosen: {}, words: "" };
  let person = sessionStorage.getItem("truepair.person") || localStorage.getItem("truepair.person") || "";
  let session = null;
  let visible = false;
  let editing = false;
  let screen = [];
  let began = 0;
  let looked = null;

  const trouble = make("div", { class: "trouble", role: "alert" });
  const refusal = make("div", { class: "refusal", role: "alert" });
  const last = make("p", { class: "last", role: "status" });
  const stage = make("div", { class: "stage" });
  const panel = progressPanel();
  const help = helpDialog();
  const bar = controls({ audits, settings, changed, rename, help: () => help.showModal() });
  const acts = {
    judge,
    undo,
    look,
    next,
    screen: nextScreen,
    edit,
    edited() { editing = false; render(); one.element.focus({ preventScroll: true }); },
    open(item) { session.deck.at = session.deck.items.indexOf(item); changed({ view: "one" }, true); },
    get source() { return settings.source; },
    get searches() { return audits.find((source) => source.name === settings.source).search != null; },
  };
  const one = onePair(acts);
  const grid = gridOfPairs(acts);
  const desk = make("div", { class: "desk" }, make("div", {}, refusal, trouble, stage, last), panel.element);
  root.append(bar.element, desk, help);

  async function start() {
    if (session) session.close();
    session = null;
    bar.show(person);
    desk.hidden = !person;
    if (!person) {
      stage.replaceChildren();
      if (!root.querySelector(".name-form")) desk.before(nameForm(named));
      return;
    }
    stage.replaceChildren(make("p", { class: "soft" }, "Opening …"));
    const { audit } = audits.find((source) => source.name === settings.source);
    const mine = new Session({ ...settings, audit, person, ahead: settings.view === "grid" ? SCREEN : AHEAD }, { progress: panel.show, others, waiting, refused, gone });
    session = mine;
    try {
      await mine.begin();
    } catch (error) {
      if (session === mine) fail(error, start);
      return;
    }
    if (session !== mine) return;
    trouble.replaceChildren();
    last.replaceChildren();
    if (settings.view === "grid") return void nextScreen();
    render();
    if (visible && bar.element.contains(document.activeElement) && document.activeElement.matches("select")) {
      one.element.focus({ preventScroll: true }); // what was chosen is there: keys are about the pair now
    }
  }

  function named(name) {
    person = name;
    sessionStorage.setItem("truepair.person", name);
    localStorage.setItem("truepair.person", name);
    start();
  }

  function rename() {
    person = "";
    start();
  }

  /** Other settings; `keep`: the pairs stay as they are, only their look changes. */
  function changed(values, keep = false) {
    Object.assign(settings, values);
    const { source, order, view } = settings;
    history.replaceState(null, "", `#/review?${new URLSearchParams({ source, order, view })}`);
    bar.show(person);
    if (keep) render();
    else start();
  }

  function fail(error, again) {
    const act = error.type === "other-audit"
      ? make("button", { type: "button", onclick: () => location.reload() }, "Reload the page")
      : make("button", { type: "button", onclick: () => { trouble.replaceChildren(); again(); } }, "Try again");
    trouble.replaceChildren(errorBox(error), act);
  }

  function render() {
    if (!session) return;
    const { deck } = session;
    if (settings.view === "grid") {
      stage.replaceChildren(grid.element);
      grid.show(screen, { person, verdict: settings.verdict });
      return;
    }
    if (!deck.current) {
      stage.replaceChildren(make("p", { class: "notice" }, "No pair is left here: all are decided. Choose another order, or look at what others decided."));
      return;
    }
    if (stage.firstChild !== one.element) stage.replaceChildren(one.element);
    one.show(deck.current, { person, verdict: settings.verdict });
    if (looked !== deck.current) began = performance.now();
    looked = deck.current;
    for (let step = -2; step <= AHEAD; step += 1) {
      const near = deck.items[deck.at + step];
      if (near && step) ready(near.pair, 768);
    }
    if (!deck.decided(deck.current)) session.fill().catch((error) => fail(error, next));
  }

  function judge(verdict, more = {}) {
    const subject = settings.view === "grid" ? grid.subject() : [session?.deck.current].filter(Boolean);
    if (!subject.length) return;
    const seconds = subject.length === 1 && settings.view === "one" ? (performance.now() - began) / 1000 : null;
    session.judge(subject, verdict, { seconds, ...more });
    const { name, sign, style } = VERDICTS[verdict];
    const about = subject.length === 1 ? make("q", {}, subject[0].pair.caption) : `${subject.length} pairs`;
    last.replaceChildren(make("span", { class: `${style} mark`, "aria-hidden": "true" }, sign), `${name}: `, about);
    if (settings.view === "grid") {
      if (screen.every((item) => session.deck.decided(item))) nextScreen();
      else { render(); grid.judged(); }
    } else {
      editing = false;
      next();
    }
  }

  async function next() {
    const mine = session;
    if (!mine) return;
    if (settings.view === "grid") return void nextScreen();
    if (!mine.deck.next()) {
      try {
        await mine.fill();
      } catch (error) {
        return void fail(error, next);
      }
      if (session !== mine) return;
      if (!mine.deck.next()) last.append(" All pairs of this order are decided.");
    }
    render();
  }

  /** The next pairs of a grid: undecided ones that are not on the screen, else those that are left on it. */
  async function nextScreen() {
    const mine = session;
    const shown = new Set(screen);
    try {
      await mine.fill();
    } catch (error) {
      return fail(error, nextScreen);
    }
    if (session !== mine) return undefined;
    const open = mine.deck.items.filter((item) => !mine.deck.decided(item));
    const fresh = open.filter((item) => !shown.has(item));
    screen = (fresh.length ? fresh : open).slice(0, SCREEN);
    mine.deck.at = screen.length ? mine.deck.items.indexOf(screen.at(-1)) : mine.deck.items.length - 1;
    render();
    if (visible) grid.focus(0, true);
    return mine.fill().then(() => {
      for (const item of mine.deck.items.slice(mine.deck.at + 1, mine.deck.at + 1 + SCREEN)) ready(item.pair, 192);
    }).catch(() => {});
  }

  function look(step) {
    if (session?.deck.look(step)) render();
    else announce(step < 0 ? "This is the first pair." : "This is the last pair.");
  }

  function edit() {
    if (settings.view !== "one" || !session?.deck.current) return;
    editing = true;
    one.edit(session.deck.current);
  }

  async function undo() {
    const mine = session;
    let taken, left;
    try {
      ({ taken, left } = await mine.undo());
    } catch (error) {
      return fail(error, undo);
    }
    if (session !== mine) return undefined;
    const about = [...taken, ...left.map(({ pair_id }) => pair_id)].find(Boolean);
    if (!about) {
      last.replaceChildren(leftWords(left) || "Nothing that was judged in this tab is left to take back. Go back to a pair and judge it anew.");
      return undefined;
    }
    const { pair } = await mine.deck.goTo(about);
    const words = taken.length > 1 ? `${taken.length} decisions` : make("q", {}, pair.caption);
    last.replaceChildren(...(taken.length ? ["Taken back: ", words, ". "] : []), leftWords(left));
    render();
    if (settings.view === "grid") grid.focus(Math.max(0, screen.findIndex((item) => item.pair === pair)), true);
    return undefined;
  }

  function others(touched, people) {
    if (people.length) announce(`${people.join(", ")} decided`);
    if (!editing && touched.length) {
      if (settings.view === "grid" ? screen.some((item) => touched.includes(item)) : touched.includes(session.deck.current)) render();
    }
  }

  function waiting({ count, error }) {
    if (!error) return trouble.replaceChildren();
    const many = count === 1 ? "1 decision waits" : `${count} decisions wait`;
    return trouble.replaceChildren(
      make("p", { class: "notice error" }, `${many} in this browser and will be sent again. ${error.message}`),
    );
  }

  /** Stays until it is read: what waits and what is told of it comes and goes beside it. */
  function refused({ count, error }) {
    const many = count === 1 ? "1 decision was refused and is not kept." : `${count} decisions were refused and are not kept.`;
    refusal.append(make("div", { class: "notice error" }, `${many} ${error.message} `, make("button", { type: "button", class: "small", onclick: (event) => event.target.parentElement.remove() }, "Hide")));
  }

  function gone(error) {
    fail(error, start);
  }

  /** What was decided about audits that are not served now: it is sent when they are, unless it is thrown away. */
  function elsewhere() {
    const { count, names, discard } = waitingElsewhere(audits);
    if (!count) return;
    const many = count === 1 ? "1 decision about another audit waits" : `${count} decisions about other audits wait`;
    const box = make("div", { class: "notice" }, `${many} in this browser (${names.join(", ")}), to be sent when it is served at this address again. `);
    box.append(
      make("button", { type: "button", class: "small", onclick: () => box.remove() }, "Hide"),
      " ",
      make("button", { type: "button", class: "small", onclick: () => { discard(); box.remove(); } }, "Throw away"),
    );
    refusal.append(box);
  }

  function onkey(event) {
    if (!visible || !session || help.open || event.isComposing || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const { target, key } = event;
    if (target.matches?.("textarea, select, input:not([type=checkbox])")) return;
    if ((key === " " || key === "Enter") && target.closest?.("button, a, summary, input")) return;
    const small = key.length === 1 ? key.toLowerCase() : key;
    const inGrid = settings.view === "grid";
    if (BY_KEY[small]) { if (!event.repeat) judge(BY_KEY[small]); }
    else if (key === "Backspace") { if (!event.repeat) undo(); }
    else if (small === "n") next();
    else if (small === "?") help.showModal();
    else if (small === "g") changed({ view: inGrid ? "one" : "grid" });
    else if (small === "v") changed({ verdict: !settings.verdict }, true);
    else if (inGrid) { if (!grid.key(event)) return; }
    else if (key === "ArrowLeft" || key === "ArrowUp") look(-1);
    else if (key === "ArrowRight" || key === "ArrowDown") look(1);
    else if (small === "e") edit();
    else if (/^[1-5]$/.test(key)) {
      const proposal = session.deck.current?.pair.proposed[Number(key) - 1];
      if (!proposal) return;
      if (!event.repeat) judge("mismatch", { partner: proposal.pair_id });
    } else return;
    event.preventDefault();
  }

  elsewhere();
  document.addEventListener("keydown", onkey);
  stage.addEventListener("click", (event) => {
    // After a click, keys are about the pair again and not about the button.
    if (event.detail > 0 && event.target.closest("button") && stage.contains(document.activeElement) && settings.view === "one" && !editing) {
      one.element.focus({ preventScroll: true });
    }
  });

  return {
    shown(rest) {
      visible = true;
      const given = new URLSearchParams(rest.replace(/^\?/, ""));
      const wanted = { source: given.get("source"), order: given.get("order"), view: given.get("view") };
      if (!audits.some((source) => source.name === wanted.source)) delete wanted.source;
      if (!["gain", "worst", "facet"].includes(wanted.order)) delete wanted.order;
      if (!["one", "grid"].includes(wanted.view)) delete wanted.view;
      Object.assign(settings, wanted);
      if (session) session.watch(true);
      else start();
    },
    hidden() {
      visible = false;
      session?.watch(false);
    },
  };
}
