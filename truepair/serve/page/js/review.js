// Review: one pair after the other.

import { make } from "./elements.js";

export function mount(root) {
  root.append(make("h1", {}, "Review"));
  return { shown() {}, hidden() {} };
}
