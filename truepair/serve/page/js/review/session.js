// One person's review of one audit in this tab: the pairs, the decisions on their way, and what others decide meanwhile.

import { get, post } from "../api.js";
import { Batches } from "./batches.js";
import { Deck, otherAudit, standing } from "./deck.js";
import { Outbox, randomId } from "./outbox.js";

const EVERY = 2000;
const SOON = 120;

export class Session {
  /**
   * `settings`: source, audit (digest of its pairs), person, order, again, chosen, words, ahead.
   * `tell`: progress, others, waiting, refused, gone (the audit is another by now).
   */
  constructor(settings, tell) {
    const { source, audit, person, order, again, chosen, words, ahead } = settings;
    const part = order === "facet" ? { ...chosen, words } : {};
    this.tell = tell;
    this.settings = settings;
    this.deck = new Deck({ source, person, order, again: again || undefined, ...part }, audit, ahead);
    this.latest = 0;
    this.own = new Set();
    this.batches = new Batches(source, audit, person);
    this.outbox = new Outbox(source, audit, {
      kept: (entry, answer) => this.kept(entry, answer),
      changed: (state) => tell.waiting({ count: state.waiting, error: state.error }),
      refused: (entry, error) => this.refused(entry, error),
      elsewhere: (entry) => this.shown(entry),
    });
  }

  async begin() {
    this.latest = await this.deck.begin();
    for (const { decisions } of this.outbox.entries) this.mark(decisions);
    if (this.deck.current && this.deck.decided(this.deck.current)) this.deck.next();
    this.watch(true);
    this.look();
  }

  close() {
    this.closed = true;
    this.watch(false);
    clearTimeout(this.soon);
    clearTimeout(this.outbox.timer);
  }

  fill() {
    return this.deck.fill();
  }

  judge(items, verdict, { seconds = null, caption = null, partner = null }) {
    const { person } = this.settings;
    const decisions = items.map((one) => ({
      pair_id: one.pair.pair_id, verdict, person, caption, partner, seconds, chosen_by: one.chosen_by, probability_chosen: one.probability,
    }));
    this.mark(decisions);
    const entry = this.outbox.add(decisions);
    this.batches.push({ key: entry.key, ids: entry.decisions.map(({ id }) => id) });
  }

  mark(decisions) {
    for (const decision of decisions) {
      const one = this.deck.byId.get(decision.pair_id);
      if (one && decision.person === this.settings.person) one.mine = standing(decision);
    }
  }

  kept(entry, answer) {
    for (const number of answer.numbers) this.own.add(number);
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.look(), SOON);
  }

  /** It was not kept: there is nothing to take back, and who judged has to know. */
  refused(entry, error) {
    this.batches.drop(entry.key);
    this.tell.refused({ count: entry.decisions.length, error });
    this.shown(entry);
  }

  /** Show what stands about the pairs of an entry that was not kept from here. */
  shown(entry) {
    for (const { pair_id } of entry.decisions) {
      this.stand(pair_id).then(() => this.tell.others([this.deck.byId.get(pair_id)], [])).catch(() => {});
    }
  }

  /**
   * Take back what was judged last in this tab, all that was judged at once; one call after the other. `taken`: ids of
   * the pairs, the last one first; `left`: { pair_id, why } of decisions that were not taken back.
   */
  undo() {
    this.undoing = (this.undoing || Promise.resolve()).catch(() => {}).then(() => this.undoLast());
    return this.undoing;
  }

  async undoLast() {
    const batch = this.batches.last;
    if (!batch) return { taken: [], left: [] };
    const unsent = this.outbox.takeBack(batch.key);
    if (unsent) {
      this.batches.drop(batch.key);
      const ids = unsent.decisions.map((decision) => decision.pair_id).reverse();
      for (const id of ids) this.stand(id).catch(() => { this.deck.byId.get(id).mine = null; });
      for (const id of ids) if (this.deck.byId.has(id)) this.deck.byId.get(id).mine = null;
      return { taken: ids, left: [] };
    }
    const { source, audit, person } = this.settings;
    const until = Date.now() + 5000;
    while (this.outbox.holds(batch.key) && Date.now() < until) await new Promise((done) => setTimeout(done, 30));
    if (this.outbox.holds(batch.key)) {
      throw new Error("The decisions before are not kept yet; they are sent again, then this one can be taken back.");
    }
    batch.undo ||= randomId(); // asked again after a failure, it is the same request
    const answer = await post("/decisions/undo", { source, audit, id: batch.undo, person, decisions: batch.ids });
    this.batches.drop(batch.key);
    const taken = [...new Set(answer.taken_back.map((kept) => kept.pair_id))];
    const left = answer.not_taken_back;
    const ids = [...taken, ...left.map(({ pair_id }) => pair_id)].filter(Boolean);
    await Promise.all(ids.map((id) => this.stand(id).catch(() => {}))); // else the next look tells
    this.look();
    return { taken, left };
  }

  /** Ask what stands of this person about a pair. */
  async stand(id) {
    const { source, person } = this.settings;
    const { decisions } = await get("/decisions/history", { source, pair_id: id });
    const mine = decisions.filter((kept) => kept.person === person).at(-1);
    const one = this.deck.byId.get(id);
    if (one) one.mine = mine ? standing(mine) : null;
  }

  /** Look at once, and then every two seconds while the page is seen. */
  watch(on) {
    clearInterval(this.timer);
    if (on) this.timer = setInterval(() => document.hidden || this.look(), EVERY);
  }

  async look() {
    const { source, audit, person } = this.settings;
    if (this.looking || this.closed) {
      this.again = true;
      return;
    }
    this.looking = true;
    this.again = false;
    try {
      const state = await get("/decisions/progress", { source });
      if (this.closed) return;
      if (state.audit !== audit) throw otherAudit(source);
      if (state.latest !== this.told) this.tell.progress(state);
      this.told = state.latest;
      if (state.latest > this.latest) {
        const { decisions, latest } = await get("/decisions/history", { source, after: this.latest });
        const foreign = decisions.filter((kept) => !this.own.has(kept.number));
        this.latest = decisions.at(-1)?.number || latest;
        const touched = this.deck.takeIn(foreign.filter((kept) => kept.person !== person || !this.unsent(kept.pair_id)));
        this.tell.others(touched, [...new Set(foreign.filter((kept) => kept.person !== person).map((kept) => kept.person))]);
      }
    } catch (error) {
      // Else the next look tells; decisions that wait are told of by the outbox.
      if (!["other-audit", "audit-changed"].includes(error.type) || this.closed) return;
      this.watch(false);
      this.tell.gone(error);
    } finally {
      this.looking = false;
      if (this.again && !this.closed) this.soon = setTimeout(() => this.look(), SOON);
    }
  }

  unsent(id) {
    return this.outbox.entries.some(({ decisions }) => decisions.some((decision) => decision.pair_id === id));
  }
}
