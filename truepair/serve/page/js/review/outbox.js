// Decisions on their way to the service: kept in the browser until it says that they are on its disk, sent again until
// then, in order. Each has an id, so that what was kept already is not kept twice.

import { post } from "../api.js";

const PREFIX = "truepair.waiting.";
const FIRST_WAIT = 1000;
const LONGEST_WAIT = 15000;

/** All that wait in this browser, the oldest first: { key, source, audit, decisions, read }, as other tabs may have them. */
function stored() {
  const found = [];
  for (const key of Object.keys(localStorage).filter((name) => name.startsWith(PREFIX)).sort()) {
    try {
      const entry = JSON.parse(localStorage.getItem(key));
      if (Array.isArray(entry.decisions)) found.push({ ...entry, key, read: true });
    } catch {
      localStorage.removeItem(key);
    }
  }
  return found;
}

/** Whether an entry is about an audit; those of earlier versions tell its name alone. */
const about = (entry, source, audit) => entry.source === source && (entry.audit ?? audit) === audit;

/** Decisions that wait for audits that are not among those that are served; `discard` deletes them. */
export function waitingElsewhere(audits) {
  const entries = stored().filter((entry) => !audits.some(({ name, audit }) => about(entry, name, audit)));
  return {
    count: entries.reduce((sum, entry) => sum + entry.decisions.length, 0),
    names: [...new Set(entries.map((entry) => entry.source))],
    discard() { for (const { key } of entries) localStorage.removeItem(key); },
  };
}

export class Outbox {
  /**
   * `audit`: digest of its pairs; another audit of the name takes none of these decisions.
   * `kept(entry, answer)`: it is on the disk. `changed({ waiting, error })`: how many decisions wait, and why.
   * `elsewhere(entry)`: another tab has sent it, or taken it back.
   */
  constructor(source, audit, { kept, changed, refused, elsewhere }) {
    Object.assign(this, { source, audit, kept, changed, refused, elsewhere, entries: [], error: null, wait: FIRST_WAIT, sending: null, tried: null });
    this.entries = stored().filter((entry) => about(entry, source, audit));
    if (this.entries.length) this.send();
  }

  /** How many decisions wait. */
  get waiting() {
    return this.entries.reduce((sum, entry) => sum + entry.decisions.length, 0);
  }

  add(decisions) {
    const named = decisions.map((decision) => ({ id: randomId(), ...decision }));
    const entry = { source: this.source, decisions: named, stored: true, key: `${PREFIX}${String(Date.now()).padStart(15, "0")}.${named[0].id}` };
    this.entries.push(entry);
    try {
      localStorage.setItem(entry.key, JSON.stringify({ source: this.source, audit: this.audit, decisions: named }));
    } catch {
      entry.stored = false; // the browser's own store is full or closed: the decision waits in memory
    }
    if (!this.timer) this.send();
    return entry;
  }

  holds(key) {
    return this.entries.some((entry) => entry.key === key);
  }

  /** Take the decisions of one entry out again if they surely were not kept; null where they may have been. */
  takeBack(key) {
    const entry = this.entries.find((each) => each.key === key);
    if (!entry || this.sending === entry || (this.tried === entry && this.error?.status !== 507) || gone(entry)) return null;
    this.entries = this.entries.filter((other) => other !== entry);
    localStorage.removeItem(key);
    if (!this.entries.length) this.error = null;
    this.tell();
    return entry;
  }

  async send() {
    if (this.sending) return;
    clearTimeout(this.timer);
    this.timer = null;
    while (this.entries.length) {
      const entry = this.entries[0];
      if (entry.read && gone(entry)) {
        this.done(entry);
        this.elsewhere(entry);
        continue;
      }
      this.sending = this.tried = entry;
      try {
        const answer = await post("/decisions", { source: this.source, audit: this.audit, decisions: entry.decisions });
        this.done(entry);
        this.kept(entry, answer);
      } catch (error) {
        if (error.status >= 400 && error.status < 500 && ![401, 408, 409, 421, 429].includes(error.status)) {
          this.done(entry); // it will never be taken
          this.refused(entry, error);
        } else {
          this.error = error;
          break;
        }
      } finally {
        this.sending = null;
      }
    }
    if (this.entries.length) {
      this.timer = setTimeout(() => this.send(), this.wait);
      this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
    }
    this.tell();
  }

  done(entry) {
    this.entries = this.entries.filter((other) => other !== entry);
    localStorage.removeItem(entry.key);
    this.error = null;
    this.wait = FIRST_WAIT;
  }

  tell() {
    this.changed({ waiting: this.waiting, error: this.error });
  }
}

/** Whether an entry of the browser's store is no longer there. */
function gone(entry) {
  return (entry.read || entry.stored) && localStorage.getItem(entry.key) === null;
}

export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
