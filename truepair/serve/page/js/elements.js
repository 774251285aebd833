// Elements from plain values. Text is always set as text: nothing of the data is ever read as HTML.

/** An element; `attributes` with functions are listeners (`onclick`), null and false ones are left out. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Say something to those who listen to the page. */
export function announce(text) {
  document.getElementById("status").textContent = text;
}

/** A sentence about something that went wrong. */
export function errorBox(error) {
  return make("p", { class: "notice error", role: "alert" }, error.message || String(error));
}

/** A number in [-1, 1] or [0, 1] as people read it; a dash where there is none. */
export function figure(value, digits = 3) {
  return value === null || value === undefined ? "–" : value.toFixed(digits);
}

/** The picture of an image, or its name where there is none. `width` is one of 96, 192, 384, 768. */
export function picture(address, name, width, attributes = {}) {
  if (!address) return make("div", { class: "pic nopic" }, make("b", {}, name));
  return make("img", { class: "pic", src: `${address}?width=${width}`, alt: name, decoding: "async", ...attributes });
}
