// Pictures fetched and decoded before they are shown.

const KEPT = 40;
const held = new Map();

/** The picture of a pair as an element that may be ready already; null where it has none. */
export function ready(pair, width) {
  if (!pair.picture) return null;
  const address = `${pair.picture}?width=${width}`;
  let image = held.get(address);
  if (image) {
    held.delete(address);
  } else {
    image = new Image();
    image.decoding = "sync";
    image.src = address;
    image.decode().catch(() => {});
  }
  held.set(address, image);
  if (held.size > KEPT) held.delete(held.keys().next().value);
  image.className = "pic";
  image.alt = pair.image;
  return image;
}
