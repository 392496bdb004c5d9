"use strict";

// The view is a pure function of `state` (attention type, words or tokens, and a head, or "mean" of its layer)
// and of `data`, the selected sentence.
const { sentences, chosen } = JSON.parse(document.getElementById("data").textContent);
let data, sides;
const kinds = {
  cross: { rows: "target", columns: "source",
    about: "Where each word of the translation attends in the source: the decoder’s second sub-layer." },
  encoder: { rows: "source", columns: "source",
    about: "Where each word of the source attends in the source: the encoder’s first sub-layer." },
  decoder: { rows: "target", columns: "target",
    about: "Where each position of the translation attends in the words before it: the decoder’s first sub-layer, masked. " +
      "A row is labelled with the word it generates; its input is the previous word, or the start token." },
};
const state = { kind: "cross", unit: "words", layer: 0, head: "mean" };
const byId = id => document.getElementById(id);

function unpacked(packed) {
  const raw = atob(packed);
  const bytes = Uint8Array.from(raw, character => character.charCodeAt(0));
  const numbers = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 2 }, (_, at) => numbers.getUint16(2 * at, true) / 65535);
}

/** The tokens, or the words, along an axis. The decoder’s columns are what it reads: its rows one later. */
function names(kind, axis) {
  const side = sides[kinds[kind][axis]];
  if (kind === "decoder" && axis === "columns") {
    const read = ["<s>", ...side.tokens.slice(0, -1)];
    if (state.unit === "tokens") return read;
    return ["<s>", ...side.words.slice(0, -1)];
  }
  return state.unit === "tokens" ? side.tokens : side.words;
}

function owners(kind, axis) {
  const side = sides[kinds[kind][axis]];
  if (state.unit === "tokens") return side.tokens.map((_, at) => at);
  if (kind === "decoder" && axis === "columns") return [0, ...side.owners.slice(0, -1).map(owner => owner + 1)];
  return side.owners;
}

/** One head’s weights, or the mean of a layer’s, as rows of numbers between the chosen units. */
function weights(kind, layer, head) {
  const all = kinds[kind].weights;
  const R = sides[kinds[kind].rows].tokens.length, C = sides[kinds[kind].columns].tokens.length;
  const heads = head === "mean" ? [...Array(data.h).keys()] : [head];
  const rowOf = owners(kind, "rows"), columnOf = owners(kind, "columns");
  const rows = Math.max(...rowOf) + 1, columns = Math.max(...columnOf) + 1;
  const sums = Array.from({ length: rows }, () => new Float64Array(columns)), members = new Float64Array(rows);
  for (let r = 0; r < R; r++) {
    members[rowOf[r]] += heads.length;
    for (const one of heads) {
      const start = ((layer * data.h + one) * R + r) * C;
      for (let c = 0; c < C; c++) sums[rowOf[r]][columnOf[c]] += all[start + c];
    }
  }
  return sums.map((row, r) => Array.from(row, sum => sum / members[r]));
}

function element(name, attributes, parent, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
}

function title(layer, head) {
  const which = head === "mean" ? "mean of its heads" : `head ${head + 1} of ${data.h}`;
  return `Layer ${layer + 1} of ${data.layers[state.kind]}, ${which}`;
}

function drawGrid() {
  const grid = byId("grid");
  grid.replaceChildren();
  grid.style.gridTemplateColumns = `auto repeat(${data.h + 1}, auto)`;
  const label = text => grid.appendChild(Object.assign(document.createElement("div"), { className: "name", textContent: text }));
  label("");
  for (let head = 0; head < data.h; head++) label(head + 1);
  label("mean");
  for (let layer = 0; layer < data.layers[state.kind]; layer++) {
    label(layer + 1);
    for (const head of [...Array(data.h).keys(), "mean"]) grid.appendChild(thumbnail(layer, head));
  }
}

function thumbnail(layer, head) {
  const rows = weights(state.kind, layer, head);
  const canvas = Object.assign(document.createElement("canvas"), { width: rows[0].length, height: rows.length });
  const pen = canvas.getContext("2d");
  const colour = getComputedStyle(document.documentElement).getPropertyValue("--weight");
  rows.forEach((row, r) => row.forEach((weight, c) => {
    pen.fillStyle = `rgba(${colour}, ${weight})`;
    pen.fillRect(c, r, 1, 1);
  }));
  const button = document.createElement("button");
  button.type = "button";
  button.dataset.layer = layer;
  button.dataset.head = head;
  button.title = title(layer, head);
  button.setAttribute("aria-label", title(layer, head));
  button.append(canvas);
  button.addEventListener("click", () => choose({ layer, head }));
  return button;
}

function width(texts) {
  return 8 + 7.6 * Math.max(...texts.map(text => [...text].length));
}

/** The rows’ words on the left, the columns’ on the right, a line for every weight: the paper’s Figures 3 to 5. */
function drawLines(rows, rowNames, columnNames) {
  const svg = byId("lines"), step = 22, gap = 150;
  svg.replaceChildren();
  const left = Math.max(70, width(rowNames)), right = Math.max(70, width(columnNames));
  const height = 24 + step * Math.max(rowNames.length, columnNames.length);
  svg.setAttribute("viewBox", `0 0 ${left + gap + right} ${height}`);
  svg.setAttribute("width", left + gap + right);
  element("text", { x: left, y: 10, "text-anchor": "end", class: "head" }, svg, "looks from");
  element("text", { x: left + gap, y: 10, class: "head" }, svg, "at");
  const y = at => 32 + step * at;
  rows.forEach((row, r) => row.forEach((weight, c) => {
    if (weight < 0.01) return;
    const [x1, x2] = [left + 6, left + gap - 6];
    element("line", { x1, y1: y(r) - 4, x2, y2: y(c) - 4, class: "link", "stroke-width": 1 + 3 * weight,
      "stroke-opacity": weight, "data-row": r, "data-column": c }, svg);
  }));
  rowNames.forEach((name, r) => unit(svg, { x: left, y: y(r), "text-anchor": "end" }, name, "row", r, rows));
  columnNames.forEach((name, c) => unit(svg, { x: left + gap, y: y(c) }, name, "column", c, rows));
}

function unit(svg, place, name, axis, at, rows) {
  const group = element("g", { class: "unit", tabindex: 0, [`data-${axis}`]: at }, svg);
  element("text", place, group, name);
  const on = () => { mark(axis, at); read(rows, axis, at); };
  const off = () => { mark(null); byId("reading").textContent = ""; };
  for (const event of ["mouseenter", "focus"]) group.addEventListener(event, on);
  for (const event of ["mouseleave", "blur"]) group.addEventListener(event, off);
}

function mark(axis, at) {
  for (const link of document.querySelectorAll("#lines .link")) {
    link.classList.toggle("dim", axis !== null && link.getAttribute(`data-${axis}`) !== String(at));
  }
  for (const group of document.querySelectorAll("svg .unit")) {
    group.classList.toggle("on", axis !== null && group.getAttribute(`data-${axis}`) === String(at));
  }
}

/** In words, for whoever cannot see the lines: the largest weights of a row or column. */
function read(rows, axis, at) {
  const rowNames = names(state.kind, "rows"), columnNames = names(state.kind, "columns");
  const found = axis === "row" ? rows[at].map((weight, c) => [weight, columnNames[c]])
    : rows.map((row, r) => [row[at], rowNames[r]]);
  const largest = found.sort((a, b) => b[0] - a[0]).slice(0, 5).filter(([weight]) => weight >= 0.005);
  const listed = largest.map(([weight, name]) => `${name} ${weight.toFixed(2)}`).join(" · ");
  const [name, verb] = axis === "row" ? [rowNames[at], "attends to"] : [columnNames[at], "is attended to by"];
  byId("reading").textContent = `“${name}” ${verb}: ${listed}`;
}

function drawHeat(rows, rowNames, columnNames) {
  const svg = byId("heat"), cell = 22;
  svg.replaceChildren();
  const left = width(rowNames), top = Math.max(40, 0.72 * width(columnNames) + 12);
  const [w, h] = [cell * columnNames.length, cell * rowNames.length];
  const slant = 0.72 * width(columnNames.slice(-1));
  svg.setAttribute("viewBox", `0 0 ${left + w + slant} ${top + h + 4}`);
  svg.setAttribute("width", left + w + slant);
  columnNames.forEach((name, c) => {
    const x = left + cell * c + 12;
    const group = element("g", { class: "unit", "data-column": c }, svg);
    element("text", { x, y: top - 6, transform: `rotate(-45 ${x} ${top - 6})` }, group, name);
  });
  rowNames.forEach((name, r) => {
    const group = element("g", { class: "unit", "data-row": r }, svg);
    element("text", { x: left - 6, y: top + cell * r + 15, "text-anchor": "end" }, group, name);
  });
  rows.forEach((row, r) => row.forEach((weight, c) => {
    const place = { x: left + cell * c, y: top + cell * r, width: cell, height: cell };
    const box = element("rect", { ...place, class: "cell", "fill-opacity": weight.toFixed(4) }, svg);
    element("title", {}, box, `${rowNames[r]} → ${columnNames[c]}: ${weight.toFixed(3)}`);
    box.addEventListener("mouseenter", () => { mark("row", r); read(rows, "row", r); });
    box.addEventListener("mouseleave", () => { mark(null); byId("reading").textContent = ""; });
  }));
  element("rect", { x: left, y: top, width: w, height: h, class: "edge" }, svg);
}

function drawDetail() {
  const rows = weights(state.kind, state.layer, state.head);
  const [rowNames, columnNames] = [names(state.kind, "rows"), names(state.kind, "columns")];
  byId("chosen").textContent = title(state.layer, state.head);
  byId("about").textContent = kinds[state.kind].about;
  byId("reading").textContent = "";
  drawLines(rows, rowNames, columnNames);
  drawHeat(rows, rowNames, columnNames);
  for (const button of document.querySelectorAll("#grid button")) {
    const pressed = button.dataset.layer === String(state.layer) && button.dataset.head === String(state.head);
    button.setAttribute("aria-pressed", pressed);
  }
}

/** A change of the state: drawn, and kept in the address, so that a view can be sent to someone. */
function choose(change) {
  const again = "kind" in change || "unit" in change;
  Object.assign(state, change);
  state.layer = Math.min(state.layer, data.layers[state.kind] - 1); // the stacks may differ in depth
  for (const name of ["kind", "unit"]) document.querySelector(`input[name=${name}][value=${state[name]}]`).checked = true;
  if (again) drawGrid();
  drawDetail();
  const head = state.head === "mean" ? "mean" : state.head + 1;
  history.replaceState(null, "", `#${state.kind}/${state.unit}/${state.layer + 1}/${head}`);
}

/** The state in the address; what makes no sense there is left out. */
function addressed() {
  const [kind, unit, layer, head] = location.hash.slice(1).split("/");
  const found = {};
  if (Object.hasOwn(kinds, kind)) found.kind = kind;
  if (["words", "tokens"].includes(unit)) found.unit = unit;
  if (Number.isInteger(+layer) && +layer >= 1 && +layer <= data.layers[found.kind ?? state.kind]) found.layer = layer - 1;
  if (head === "mean") found.head = "mean";
  else if (Number.isInteger(+head) && +head >= 1 && +head <= data.h) found.head = head - 1;
  return found;
}

document.addEventListener("keydown", event => {
  if (event.target.matches("input, select") || event.altKey || event.ctrlKey || event.metaKey) return;
  const order = [...Array(data.h).keys(), "mean"], at = order.indexOf(state.head);
  const moves = {
    ArrowRight: { head: order[Math.min(order.length - 1, at + 1)] },
    ArrowLeft: { head: order[Math.max(0, at - 1)] },
    ArrowDown: { layer: Math.min(data.layers[state.kind] - 1, state.layer + 1) },
    ArrowUp: { layer: Math.max(0, state.layer - 1) },
  };
  if (!(event.key in moves)) return;
  event.preventDefault();
  choose(moves[event.key]);
});
byId("choice").addEventListener("change", event => choose({ [event.target.name]: event.target.value }));
window.addEventListener("hashchange", () => choose({ kind: state.kind, ...addressed() }));

const spoken = (label, text) => {
  const tag = Object.assign(document.createElement("span"), { textContent: label });
  const line = document.createElement("div");
  line.append(tag, text);
  return line;
};

/** Show a sentence. The server computes one at a time: another one is another address. */
function show(number) {
  if (!sentences[number - 1].source) {
    const address = new URL(location.href);
    address.searchParams.set("sentence", number);
    location.assign(address);
    return;
  }
  data = sentences[number - 1];
  sides = { source: data.source, target: data.target };
  for (const name of Object.keys(kinds)) kinds[name].weights = unpacked(data[name]);
  byId("pair").replaceChildren(spoken(data.source_language || "source", data.source_text),
    spoken(data.target_language || "translation", data.target_text));
  document.title = `Attention: ${data.source_text}`;
  choose({ kind: state.kind });
}

const selector = byId("sentence");
sentences.forEach((one, at) => selector.append(new Option(`${at + 1}. ${one.source_text}`, at + 1)));
selector.value = chosen;
byId("sentences").hidden = sentences.length === 1;
selector.addEventListener("change", event => { event.stopPropagation(); show(+selector.value); });
data = sentences[chosen - 1];
Object.assign(state, { layer: data.first_layer }, addressed());
show(chosen);
