// What was judged at once, so that it is taken back at once; kept in this tab, through other views and a reload.

const MOST = 500;

export class Batches {
  /** Of one person about the pairs of one audit. */
  constructor(source, audit, person) {
    this.name = `truepair.batches.${JSON.stringify([source, audit, person])}`;
    this.all = [];
    try {
      const all = JSON.parse(sessionStorage.getItem(this.name)) || [];
      this.all = all.filter(({ ids }) => Array.isArray(ids)); // those of earlier versions tell a count alone
    } catch {
      // Nothing that can be read: nothing is taken back that may not be this tab's.
    }
  }

  /** `batch`: { key, ids }, the entry of the outbox and the ids of its decisions. */
  push(batch) {
    this.keep([...this.all, batch].slice(-MOST));
  }

  /** The last one; null where none is known. */
  get last() {
    return this.all.at(-1) || null;
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
