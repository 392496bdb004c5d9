"use strict";
// Shared by all views: the state, its address, requests to the server, and small drawing helpers.

const page = JSON.parse(document.getElementById("data").textContent);
const PAUSE = 350; // milliseconds after the last key
const byId = id => document.getElementById(id);

/** What the address says. Query: the sentence and what the server computes; fragment: how it is shown. */
const state = {
  view: page.view,
  q: "", source: "", target: "", sentence: page.chosen, translation: "", off: [], beam: 0,
  kind: "cross", unit: "words", layer: 0, head: "mean", threshold: 0, order: "layer",
  panel: "steps", stepKind: "cross", stepLayer: 0, stepHead: 0, position: 0, step: 0, other: 0, lensLayer: -1,
};
let sentences = page.sentences;
let data = null; // the selected sentence

function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("aria-") || name.startsWith("data-") || name === "role" || name === "scope") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

function element(name, attributes, parent, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
}

const range = length => Array.from({ length }, (_, at) => at);
const shown = token => token.replaceAll("▁", "␣");
const signed = number => `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(2)}`;
const fixed = (number, digits = 2) => number.toFixed(digits).replace("-", "−");
const percent = p => p >= 0.9995 ? "100%" : p >= 0.1 ? `${(100 * p).toFixed(1)}%` : p >= 0.0001 ? `${(100 * p).toFixed(2)}%` : "<0.01%";
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** POST fields to the server. Throws an Error whose message can be shown. */
async function ask(path, fields) {
  let answer;
  try {
    answer = await fetch(path, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(fields),
    });
  } catch {
    throw new Error("The server is not responding.");
  }
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(content.error ?? `The server answered with status ${answer.status}.`);
  return content;
}

/** The fields that select a computation on the server. */
function inspected() {
  const fields = { q: state.q, source: state.source, target: state.target };
  if (state.sentence > 1) fields.sentence = state.sentence;
  if (state.translation) fields.translation = state.translation;
  if (state.off.length) fields.off = state.off.join(",");
  if (state.beam) fields.beam = state.beam;
  return fields;
}

const paths = { translate: "./", attend: "attend", inside: "inside" };

function fragment() {
  if (state.view === "translate") return "";
  if (state.view === "attend") {
    const head = state.head === "mean" ? "mean" : state.head + 1;
    const parts = [state.kind, state.unit, state.layer + 1, head];
    if (state.threshold || state.order !== "layer") parts.push(state.threshold, state.order);
    return `#${parts.join("/")}`;
  }
  const place = [state.stepKind, state.stepLayer + 1, state.stepHead + 1, state.position, state.step + 1];
  const rest = { steps: place, beam: [], next: [state.position, state.lensLayer + 1], why: [state.position, state.other] };
  return `#${["inside", state.panel, ...rest[state.panel]].join("/")}`;
}

function addressOf(view) {
  const fields = view === "translate" ? { q: state.q, source: state.source, target: state.target } : inspected();
  const query = new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== ""));
  return `${paths[view]}${String(query) ? `?${query}` : ""}`;
}

/** Keep the address equal to the state, so that it can be shared and reloaded. */
function remember(push = false) {
  const address = page.server ? addressOf(state.view) + fragment() : fragment();
  history[push ? "pushState" : "replaceState"](null, "", address);
  for (const link of document.querySelectorAll("a[data-view]:not([aria-disabled])")) {
    link.href = page.server ? addressOf(link.dataset.view) : link.dataset.view === "inside" ? "#inside/steps" : "#cross";
  }
}

const whole = (text, least, most) => /^\d{1,6}$/.test(text ?? "") && +text >= least && +text <= most ? +text : null;

/** Read the fragment; leave out what makes no sense for this sentence. */
function readFragment() {
  const [first, ...rest] = decodeURIComponent(location.hash.slice(1)).split("/");
  if (!page.server && data) state.view = first === "inside" ? "inside" : "attend";
  if (!data) return;
  const keep = (name, value) => { if (value !== null) state[name] = value; };
  const { layers, h } = data, T = data.target.tokens.length;
  if (first === "inside") {
    const [panel, ...place] = rest;
    if (["steps", "beam", "next", "why"].includes(panel)) state.panel = panel;
    if (panel === "steps") {
      if (["encoder", "decoder", "cross"].includes(place[0])) state.stepKind = place[0];
      keep("stepLayer", whole(place[1], 1, layers[state.stepKind]) && +place[1] - 1);
      keep("stepHead", whole(place[2], 1, h) && +place[2] - 1);
      keep("position", whole(place[3], 0, (state.stepKind === "encoder" ? data.source.tokens.length : T) - 1));
      keep("step", whole(place[4], 1, 99) && +place[4] - 1);
    } else {
      keep("position", whole(place[0], 0, T - 1));
      if (panel === "next") keep("lensLayer", whole(place[1], 1, layers.cross) && +place[1] - 1);
      if (panel === "why") keep("other", whole(place[1], 0, data.vocab_size - 1));
    }
    return;
  }
  const [unit, layer, head, threshold, order] = rest;
  if (["cross", "encoder", "decoder"].includes(first)) state.kind = first;
  if (["words", "tokens"].includes(unit)) state.unit = unit;
  keep("layer", whole(layer, 1, layers[state.kind]) && +layer - 1);
  keep("head", head === "mean" ? "mean" : whole(head, 1, h) && +head - 1);
  keep("threshold", whole(threshold, 0, 50));
  if (["layer", "label", "entropy", "error"].includes(order)) state.order = order;
}

function readQuery() {
  const asked = new URLSearchParams(location.search);
  for (const name of ["q", "source", "target", "translation"]) state[name] = asked.get(name) ?? "";
  state.off = (asked.get("off") ?? "").split(",").map(name => name.trim()).filter(Boolean);
  state.sentence = whole(asked.get("sentence"), 1, 1e5) ?? 1;
  state.beam = whole(asked.get("beam"), 1, 1e5) ?? 0;
}

/** A drawing as a file: the style sheet is not in it, so computed colours become attributes. */
function savedDrawing(svg) {
  const copy = svg.cloneNode(true);
  const pairs = [svg, ...svg.querySelectorAll("*")].map((one, at) => [one, [copy, ...copy.querySelectorAll("*")][at]]);
  for (const [one, other] of pairs) {
    const style = getComputedStyle(one);
    for (const name of ["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight", "font-family"]) {
      other.setAttribute(name, style.getPropertyValue(name));
    }
    other.removeAttribute("class");
  }
  const box = svg.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  copy.prepend(element("rect", { width: "100%", height: "100%", fill: colour("--card") }));
  return new XMLSerializer().serializeToString(copy);
}

function download(name, address) {
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

async function save(kind, name, drawings) {
  for (const svg of drawings) {
    const file = `${name}-${svg.id}.${kind}`;
    const source = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(savedDrawing(svg))}`;
    if (kind === "svg") { download(file, source); continue; }
    const image = new Image();
    image.src = source;
    await image.decode();
    const canvas = make("canvas", { width: 2 * image.width, height: 2 * image.height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    download(file, canvas.toDataURL("image/png"));
  }
}

/** Words of two texts that are not in their longest common subsequence. */
function differing(words, others) {
  const length = range(words.length + 1).map(() => new Uint16Array(others.length + 1));
  for (let i = words.length - 1; i >= 0; i--) {
    for (let j = others.length - 1; j >= 0; j--) {
      length[i][j] = words[i] === others[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const found = new Set();
  for (let i = 0, j = 0; i < words.length;) {
    if (j < others.length && words[i] === others[j]) { i++; j++; }
    else if (j < others.length && length[i][j + 1] >= length[i + 1][j]) j++;
    else found.add(i++);
  }
  return found;
}

/** The text as nodes, with the words that differ from another text marked. */
function markedText(text, other) {
  const parts = text.split(/(\s+)/), words = parts.filter((_, at) => at % 2 === 0);
  const marked = differing(words, other.split(/\s+/));
  return parts.map((part, at) => at % 2 === 0 && part && marked.has(at / 2) ? make("mark", { textContent: part }) : part);
}
