// The pairs of a review in the order in which they are shown: those behind, the one that is looked at, those ahead.

import { get } from "../api.js";

const AHEAD = 8;
const BEHIND = 20;
const MOST = 600;

/** What a person thinks of a pair, as the page keeps it; `others`: person → verdict of the other people. */
function item(pair, chosen = {}) {
  return { pair, chosen_by: chosen.chosen_by || "looked up", probability: chosen.probability_chosen ?? null, place: chosen.place, mine: null, others: new Map() };
}

export class Deck {
  /** `asked`: what /decisions/next is asked for, `source` and `person` among it; `audit`: digest of its pairs. */
  constructor(asked, audit, ahead = AHEAD) {
    Object.assign(this, { asked, audit, ahead, items: [], byId: new Map(), at: -1, filling: null, ended: false });
  }

  get current() {
    return this.items[this.at] || null;
  }

  decided(one) {
    return one.mine !== null || (!this.asked.again && one.others.size > 0);
  }

  /** What this person decided last, so that one can look back at it; then the first that is undecided. */
  async begin() {
    const { source, person } = this.asked;
    const [behind, coming] = await Promise.all([
      get("/decisions", { source, person, limit: BEHIND }),
      get("/decisions/next", { ...this.asked, limit: 2 * this.ahead }),
    ]);
    for (const kept of behind.decisions.reverse()) this.add(kept.pair, kept).mine = standing(kept);
    this.take(coming);
    const first = this.items.findIndex((one) => !this.decided(one));
    this.at = first >= 0 ? first : this.items.length - 1;
    return behind.latest;
  }

  add(pair, chosen) {
    const known = this.byId.get(pair.pair_id);
    if (known) return known;
    const made = item(pair, chosen);
    this.items.push(made);
    this.byId.set(pair.pair_id, made);
    return made;
  }

  /** Fetch until enough undecided pairs lie ahead. */
  fill() {
    if (!this.filling) this.filling = this.fetch().finally(() => { this.filling = null; });
    return this.filling;
  }

  async fetch() {
    const open = this.items.filter((one) => !this.decided(one));
    const ahead = this.items.slice(this.at + 1).filter((one) => !this.decided(one)).length;
    if (ahead >= this.ahead || this.ended) return;
    const pending = this.items.slice(-100); // decided here, perhaps not yet there
    const skip = [...new Set([...open, ...pending].map((one) => one.place))].filter((place) => place !== undefined);
    const answer = await get("/decisions/next", { ...this.asked, limit: Math.max(2 * this.ahead - ahead, 1), skip });
    this.take(answer);
    this.trim();
  }

  take(answer) {
    if (answer.audit !== this.audit) throw otherAudit(this.asked.source);
    for (const coming of answer.pairs) this.add(coming.pair, coming);
    this.ended = answer.pairs.length === 0;
  }

  /** Let go of what lies far behind. */
  trim() {
    const over = Math.min(this.items.length - MOST, this.at - BEHIND);
    if (over <= 0) return;
    for (const gone of this.items.splice(0, over)) this.byId.delete(gone.pair.pair_id);
    this.at -= over;
  }

  /** Look at another pair: `step` pairs on or back. False where there is none. */
  look(step) {
    const place = this.at + step;
    if (place < 0 || place >= this.items.length) return false;
    this.at = place;
    return true;
  }

  /** Go to the next undecided pair after this one, else to the first there is. False where all are decided. */
  next() {
    const after = this.items.findIndex((one, place) => place > this.at && !this.decided(one));
    const place = after >= 0 ? after : this.items.findIndex((one) => !this.decided(one));
    if (place < 0) return false;
    this.at = place;
    return true;
  }

  /** Go to a pair that may have been let go. */
  async goTo(pairId) {
    if (!this.byId.has(pairId)) {
      const pair = await get(`/pairs/${pairId.split("/").map(encodeURIComponent).join("/")}`, { source: this.asked.source });
      const made = item(pair);
      this.items.splice(Math.max(this.at, 0), 0, made);
      this.byId.set(pairId, made);
    }
    this.at = this.items.indexOf(this.byId.get(pairId));
    return this.current;
  }

  /** Take in rows of the history: what this person or others thought of pairs that are here. */
  takeIn(rows) {
    const touched = [];
    for (const row of rows) {
      const one = this.byId.get(row.pair_id);
      if (!one) continue;
      if (row.person === this.asked.person) one.mine = standing(row);
      else if (row.verdict) one.others.set(row.person, row.verdict);
      else one.others.delete(row.person);
      touched.push(one);
    }
    return touched;
  }
}

/** An error: the pairs on this page are not those of the audit that is served by now. */
export function otherAudit(source) {
  const error = new Error(`Another audit is served as ${source} now. Reload the page to review it.`);
  error.type = "other-audit";
  return error;
}

/** The part of a decision that is shown; null where it was taken back. */
export function standing(kept) {
  return kept.verdict ? { verdict: kept.verdict, caption: kept.caption ?? null, partner: kept.partner ?? null } : null;
}
