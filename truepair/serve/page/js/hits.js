// What was found: a column for each source, a card for each image, a line for each caption.

import { figure, make, picture } from "./elements.js";

/** The hits of one source. `like(source, pair, side, find)` looks for what is like one of them. */
export function column(result, named, like) {
  const images = result.find === "images";
  const milliseconds = (1000 * result.seconds).toFixed(1);
  const fact = `${result.total.toLocaleString("en")} ${result.find}, ${milliseconds} ms${result.exact ? "" : ", by cells"}`;
  return make(
    "section",
    { class: "found-by", "aria-label": named ? `Found by ${result.source}` : "Found" },
    named && make("h2", {}, result.source),
    result.notice ? make("p", { class: "notice" }, result.notice) : make("p", { class: "fact" }, fact),
    make("ol", { class: images ? "images" : "captions" }, ...result.hits.map((hit) => (images ? imageCard : captionLine)(result.source, hit, like))),
  );
}

function imageCard(source, hit, like) {
  const { pair } = hit;
  const others = hit.captions.slice(1);
  return make(
    "li",
    { class: "card hit-image" },
    picture(pair.picture, pair.image, 384, { loading: "lazy", class: "pic wide" }),
    score(hit),
    caption(pair),
    others.length > 0 &&
      make("details", {}, make("summary", {}, `${others.length} more of its captions`), make("ul", {}, ...others.map((other) => make("li", {}, caption(other))))),
    make(
      "div",
      { class: "row" },
      button("Similar", `Images similar to ${pair.image}`, () => like(source, pair.pair_id, "image", "images")),
      button("Captions", `Captions that fit ${pair.image}`, () => like(source, pair.pair_id, "image", "captions")),
    ),
  );
}

function captionLine(source, hit, like) {
  const { pair } = hit;
  return make(
    "li",
    { class: "card hit-caption" },
    picture(pair.picture, pair.image, 96, { loading: "lazy", class: "pic small" }),
    make("div", {}, caption(pair), score(hit)),
    make(
      "div",
      { class: "row" },
      button("Images", `Images that fit: ${pair.caption}`, () => like(source, pair.pair_id, "caption", "images")),
      button("Near", `Captions near: ${pair.caption}`, () => like(source, pair.pair_id, "caption", "captions")),
    ),
  );
}

function button(text, said, onclick) {
  return make("button", { type: "button", class: "small", "aria-label": `${text}: ${said}`, onclick }, text);
}

/** The caption of a pair, and whether it is taken to match. */
function caption(pair) {
  const wrong = pair.verdict === "mismatch";
  const sign = pair.verdict && make("span", { class: wrong ? "wrong mark" : "right mark", "aria-hidden": "true" }, wrong ? "✗" : "✓");
  const said = pair.verdict && make("span", { class: "unseen" }, wrong ? "taken as mismatched: " : "taken as matched: ");
  const words = pair.caption ? make("q", {}, pair.caption) : make("span", { class: "soft" }, "no words");
  const p = pair.p_match === null ? null : make("span", { class: "soft whole", title: "probability that they match" }, ` p ${figure(pair.p_match, 2)}`);
  const label = pair.label && make("span", { class: "tag" }, pair.label);
  return make("p", { class: "said" }, sign, said, words, p, label);
}

function score(hit) {
  const meter = make("progress", { max: "1", value: Math.max(0, Math.min(1, hit.score)), "aria-label": `Similarity of hit ${hit.rank}` });
  const roughly = hit.closely ? "" : " (by vectors that stand in for the model)";
  return make("p", { class: "score fact" }, make("span", {}, `${hit.rank}.`), meter, make("span", {}, figure(hit.score) + roughly));
}
