// What was judged at once, so that it is taken back at once; kept in this tab, through other views and a reload.

const MOST = 500;

export class Batches {
  /** Of one person about the pairs of one audit. */
  constructor(source, audit, person) {
    this.name = `truepair.batches.${JSON.stringify([source, audit, person])}`;
    this.all = [];
    try {
      this.all = JSON.parse(sessionStorage.getItem(this.name)) || [];
    } catch {
      // Nothing that can be read: one decision at a time is taken back.
    }
  }

  /** `batch`: { key, count }, the entry of the outbox and how many decisions it had. */
  push(batch) {
    this.keep([...this.all, batch].slice(-MOST));
  }

  /** The last one; null where none is known. */
  pop() {
    const last = this.all.at(-1) || null;
    this.keep(this.all.slice(0, -1));
    return last;
  }

  drop(key) {
    this.keep(this.all.filter((batch) => batch.key !== key));
  }

  keep(all) {
    this.all = all;
    try {
      sessionStorage.setItem(this.name, JSON.stringify(all));
    } catch {
      // The browser's own store is full or closed: known until the page is left.
    }
  }
}
