// The Attention view: every head of a kind as small multiples, one of them large, and heads switched off.

const kinds = {
  cross: { rows: "target", columns: "source", name: "cross-attention",
    about: "Cross-attention: where each word of the translation attends in the source (the decoder’s second sub-layer)." },
  encoder: { rows: "source", columns: "source", name: "encoder self-attention",
    about: "Encoder self-attention: where each word of the source attends in the source (the encoder’s first sub-layer)." },
  decoder: { rows: "target", columns: "target", name: "decoder self-attention",
    about: "Decoder self-attention, masked: where each position of the translation attends in the words before it. " +
      "A row is labelled with the word it generates; its input is the previous word, or the start token." },
};
let sides = {}, unpackedWeights = {};

function unpacked(packed) {
  const raw = atob(packed);
  const bytes = Uint8Array.from(raw, character => character.charCodeAt(0));
  const numbers = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 2 }, (_, at) => numbers.getUint16(2 * at, true) / 65535);
}

function prepareAttention() {
  sides = { source: data.source, target: data.target };
  unpackedWeights = Object.fromEntries(Object.keys(kinds).map(kind => [kind, unpacked(data[kind])]));
}

/** The tokens, or the words, along an axis. The decoder’s columns are what it reads: its rows one later. */
function names(kind, axis) {
  const side = sides[kinds[kind][axis]];
  const all = state.unit === "tokens" ? side.tokens : side.words;
  return kind === "decoder" && axis === "columns" ? ["<s>", ...all.slice(0, -1)] : all;
}

function owners(kind, axis) {
  const side = sides[kinds[kind][axis]];
  if (state.unit === "tokens") return range(side.tokens.length);
  if (kind === "decoder" && axis === "columns") return [0, ...side.owners.slice(0, -1).map(owner => owner + 1)];
  return side.owners;
}

/** One head’s weights, or the mean of a layer’s, as rows of numbers between the chosen units. */
function weights(kind, layer, head) {
  const all = unpackedWeights[kind];
  const R = sides[kinds[kind].rows].tokens.length, C = sides[kinds[kind].columns].tokens.length;
  const heads = head === "mean" ? range(data.h) : [head];
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

const title = (layer, head) =>
  `Layer ${layer + 1} of ${data.layers[state.kind]}, ${head === "mean" ? "mean of its heads" : `head ${head + 1} of ${data.h}`}`;
const headName = (kind, layer, head) => `${kind}.${layer + 1}.${head + 1}`;
const spokenHead = name => { const [kind, layer, head] = name.split("."); return `${kinds[kind]?.name ?? kind} ${layer}.${head}`; };

/** What a head does, in a few words. */
function label(kind, layer, head) {
  if (head === "mean") return "";
  const found = data.labels[kind][layer][head];
  const shares = { "end symbol": found.end_share, "start symbol": found.end_share, "same word": found.same_share };
  const share = shares[found.label] ?? (["sharp", "diffuse", "mixed"].includes(found.label) ? null : found.offset_share);
  return share === null ? found.label : `${found.label} ${Math.round(100 * share)}%`;
}

function errorOf(layer, head) {
  return data.alignment_errors && state.kind === "cross" ? data.alignment_errors[layer][head] : null;
}

/** All heads in the chosen order. */
function orderedHeads() {
  const heads = range(data.layers[state.kind]).flatMap(layer => range(data.h).map(head => ({ layer, head })));
  const of = ({ layer, head }) => data.labels[state.kind][layer][head];
  const by = {
    label: (a, b) => of(a).label.localeCompare(of(b).label) || of(a).entropy - of(b).entropy,
    entropy: (a, b) => of(a).entropy - of(b).entropy,
    error: (a, b) => (errorOf(a.layer, a.head) ?? 0) - (errorOf(b.layer, b.head) ?? 0) || of(a).entropy - of(b).entropy,
  };
  return by[state.order] ? heads.sort(by[state.order]) : heads;
}

function drawGrid() {
  const grid = byId("grid"), byLayer = state.order === "layer";
  const name = text => make("div", { className: "name", textContent: text });
  grid.replaceChildren();
  if (byLayer) {
    grid.style.gridTemplateColumns = `auto repeat(${data.h + 1}, auto)`;
    grid.append(name("layer"), ...range(data.h).map(head => name(`head ${head + 1}`)), name("mean"));
    for (const layer of range(data.layers[state.kind])) {
      grid.append(name(layer + 1), ...[...range(data.h), "mean"].map(head => smallMultiple(layer, head)));
    }
  } else {
    grid.style.gridTemplateColumns = `repeat(${Math.min(data.h + 1, data.layers[state.kind] * data.h)}, auto)`;
    for (const { layer, head } of orderedHeads()) grid.append(smallMultiple(layer, head, `${layer + 1}.${head + 1}: `));
  }
  const errors = state.kind === "cross" ? data.alignment_errors : null;
  byId("grid-note").textContent = errors
    ? "AER: alignment error rate against the gold alignment of the built-in grammar. 0% is a perfect alignment of the content words."
    : state.order === "error" ? "There is no gold alignment for this pair: only sentences of the built-in grammar have one." : "";
  byId("order").querySelector("[value=error]").disabled = !errors && state.order !== "error";
}

function smallMultiple(layer, head, prefix = "") {
  const rows = weights(state.kind, layer, head), full = headName(state.kind, layer, head);
  const canvas = make("canvas", { width: rows[0].length, height: rows.length });
  paint(canvas, rows);
  const thumb = make("button", { type: "button", className: "thumb", title: title(layer, head), "aria-label": title(layer, head) }, canvas);
  thumb.dataset.layer = layer;
  thumb.dataset.head = head;
  thumb.addEventListener("click", () => choose({ layer, head }));
  const box = make("div", { className: "head" }, thumb);
  if (head === "mean") return box;
  const error = errorOf(layer, head);
  const text = `${prefix}${label(state.kind, layer, head)}`;
  const isOff = state.off.includes(full);
  const toggle = make("button", {
    type: "button", className: "switch", textContent: isOff ? "off" : "on", disabled: !page.server,
    "aria-pressed": String(!isOff), "aria-label": `Layer ${layer + 1}, head ${head + 1}: ${isOff ? "off" : "on"}`,
    title: page.server ? `Switch this head ${isOff ? "on" : "off"}` : "Switching heads off needs the server: heedful serve",
  });
  toggle.dataset.switch = full;
  toggle.addEventListener("click", () => switchHead(full));
  box.append(make("small", { textContent: text }));
  if (error !== null) box.append(make("small", { textContent: `AER ${Math.round(100 * error)}%` }));
  box.append(toggle);
  box.classList.toggle("off", isOff);
  return box;
}

function paint(canvas, rows) {
  const [red, green, blue] = colour("--weight").split(",").map(Number);
  const pen = canvas.getContext("2d"), image = pen.createImageData(canvas.width, canvas.height);
  rows.forEach((row, r) => row.forEach((weight, c) => {
    image.data.set([red, green, blue, Math.round(255 * weight)], 4 * (r * canvas.width + c));
  }));
  pen.putImageData(image, 0, 0);
}

function switchHead(name) {
  state.off = state.off.includes(name) ? state.off.filter(one => one !== name) : [...state.off, name].sort();
  const focused = document.activeElement?.dataset?.switch;
  load(true).then(() => { if (focused) document.querySelector(`[data-switch="${focused}"]`)?.focus(); });
}

const width = texts => 8 + 7.6 * Math.max(...texts.map(text => [...text].length));
const visible = weight => weight >= Math.max(0.01, state.threshold / 100);

/** The rows’ words on the left, the columns’ on the right, a line for every weight: the paper’s Figures 3 to 5. */
function drawLines(rows, rowNames, columnNames) {
  const svg = byId("lines"), step = cellSize(columnNames.length), gap = Math.min(240, 6.8 * step);
  svg.replaceChildren();
  const left = Math.max(70, width(rowNames)), right = Math.max(70, width(columnNames));
  const height = 24 + step * Math.max(rowNames.length, columnNames.length);
  svg.setAttribute("viewBox", `0 0 ${left + gap + right} ${height}`);
  svg.setAttribute("width", left + gap + right);
  svg.setAttribute("height", height);
  element("text", { x: left, y: 10, "text-anchor": "end", class: "soft" }, svg, "looks from");
  element("text", { x: left + gap, y: 10, class: "soft" }, svg, "at");
  const y = at => 32 + step * at;
  rows.forEach((row, r) => row.forEach((weight, c) => {
    if (!visible(weight)) return;
    const [x1, x2] = [left + 6, left + gap - 6];
    element("line", { x1, y1: y(r) - 4, x2, y2: y(c) - 4, class: "link", "stroke-width": 1 + 3 * weight,
      "stroke-opacity": weight, "data-row": r, "data-column": c }, svg);
  }));
  rowNames.forEach((name, r) => unit(svg, { x: left, y: y(r), "text-anchor": "end" }, name, "row", r, rows));
  columnNames.forEach((name, c) => unit(svg, { x: left + gap, y: y(c) }, name, "column", c, rows));
}

function unit(svg, place, name, axis, at, rows) {
  const group = element("g", { class: "unit", tabindex: 0, role: "img", [`data-${axis}`]: at }, svg);
  group.setAttribute("aria-label", `${shown(name)}, ${reading(rows, axis, at)}`);
  element("text", place, group, shown(name));
  const on = () => { mark({ [axis]: at }); byId("reading").textContent = reading(rows, axis, at); };
  const off = () => { mark({}); byId("reading").textContent = ""; };
  for (const event of ["mouseenter", "focus"]) group.addEventListener(event, on);
  for (const event of ["mouseleave", "blur"]) group.addEventListener(event, off);
}

/** Mark a row, a column, or the row and column of a cell. */
function mark(place) {
  const matches = (one, axis) => place[axis] !== undefined && one.getAttribute(`data-${axis}`) === String(place[axis]);
  const any = place.row !== undefined || place.column !== undefined;
  for (const link of document.querySelectorAll("#lines .link")) {
    link.classList.toggle("dim", any && !matches(link, "row") && !matches(link, "column"));
  }
  for (const group of document.querySelectorAll("#attend-view svg .unit")) {
    group.classList.toggle("on", matches(group, "row") || matches(group, "column"));
  }
  for (const band of document.querySelectorAll("#heat .band")) band.setAttribute("visibility", matches(band, "row") || matches(band, "column") ? "visible" : "hidden");
}

/** The largest weights of a row or column in words. */
function reading(rows, axis, at) {
  const rowNames = names(state.kind, "rows"), columnNames = names(state.kind, "columns");
  const found = axis === "row" ? rows[at].map((weight, c) => [weight, columnNames[c]])
    : rows.map((row, r) => [row[at], rowNames[r]]);
  const largest = found.sort((a, b) => b[0] - a[0]).slice(0, 5).filter(([weight]) => weight >= 0.005);
  const listed = largest.map(([weight, name]) => `${shown(name)} ${weight.toFixed(2)}`).join(" · ");
  const [name, verb] = axis === "row" ? [rowNames[at], "attends to"] : [columnNames[at], "is attended to by"];
  return `“${shown(name)}” ${verb}: ${listed}`;
}

/** Cells grow with the window, up to a size at which words still look close together. */
const cellSize = columns => Math.max(22, Math.min(36, Math.floor((innerWidth - 1300) / (2 * columns))));

function drawHeat(rows, rowNames, columnNames) {
  const svg = byId("heat"), cell = cellSize(columnNames.length);
  svg.replaceChildren();
  const left = width(rowNames), top = Math.max(40, 0.72 * width(columnNames) + 12);
  const [w, h] = [cell * columnNames.length, cell * rowNames.length];
  const slant = 0.72 * width(columnNames.slice(-1)) + 6;
  svg.setAttribute("viewBox", `0 0 ${left + w + slant} ${top + h + 4}`);
  svg.setAttribute("width", left + w + slant);
  svg.setAttribute("height", top + h + 4);
  columnNames.forEach((name, c) => {
    const x = left + cell * (c + 0.5) + 1;
    const group = element("g", { class: "unit", "data-column": c }, svg);
    element("text", { x, y: top - 6, transform: `rotate(-45 ${x} ${top - 6})` }, group, shown(name));
  });
  rowNames.forEach((name, r) => {
    const group = element("g", { class: "unit", "data-row": r }, svg);
    element("text", { x: left - 6, y: top + cell * (r + 0.5) + 4, "text-anchor": "end" }, group, shown(name));
  });
  rows.forEach((row, r) => row.forEach((weight, c) => {
    const place = { x: left + cell * c, y: top + cell * r, width: cell, height: cell };
    const opacity = weight >= state.threshold / 100 ? weight : 0;
    const box = element("rect", { ...place, class: "cell", "fill-opacity": opacity.toFixed(4), "data-row": r, "data-column": c }, svg);
    element("title", {}, box, `${shown(rowNames[r])} → ${shown(columnNames[c])}: ${weight.toFixed(3)}`);
    box.addEventListener("mouseenter", () => {
      mark({ row: r, column: c });
      byId("reading").textContent = `${shown(rowNames[r])} → ${shown(columnNames[c])}: ${weight.toFixed(3)}. ${reading(rows, "row", r)}`;
    });
    box.addEventListener("mouseleave", () => { mark({}); byId("reading").textContent = ""; });
  }));
  element("rect", { x: left, y: top, width: w, height: h, class: "edge" }, svg);
  rowNames.forEach((_, r) => element("rect", { x: left, y: top + cell * r, width: w, height: cell, class: "band", "data-row": r, visibility: "hidden" }, svg));
  columnNames.forEach((_, c) => element("rect", { x: left + cell * c, y: top, width: cell, height: h, class: "band", "data-column": c, visibility: "hidden" }, svg));
  for (const [r, c] of goldLinks()) {
    element("rect", { x: left + cell * c + 1, y: top + cell * r + 1, width: cell - 2, height: cell - 2, class: "gold" }, svg);
  }
}

const goldLinks = () => state.kind === "cross" && state.unit === "words" && data.gold ? data.gold : [];

function drawDetail() {
  const rows = weights(state.kind, state.layer, state.head);
  const [rowNames, columnNames] = [names(state.kind, "rows"), names(state.kind, "columns")];
  byId("chosen").textContent = title(state.layer, state.head);
  byId("about").textContent = kinds[state.kind].about;
  byId("what").textContent = state.head === "mean" ? "" : description(state.layer, state.head);
  byId("reading").textContent = "";
  drawLines(rows, rowNames, columnNames);
  drawHeat(rows, rowNames, columnNames);
  byId("gold-note").textContent = goldLinks().length
    ? "Outlined cells: the gold alignment of the content words, known because this pair is in the built-in grammar." : "";
  for (const button of document.querySelectorAll("#grid .thumb")) {
    const pressed = button.dataset.layer === String(state.layer) && button.dataset.head === String(state.head);
    button.setAttribute("aria-pressed", pressed);
  }
}

function description(layer, head) {
  const error = errorOf(layer, head), { entropy } = data.labels[state.kind][layer][head];
  const parts = [label(state.kind, layer, head), `entropy ${Math.round(100 * entropy)}% of the maximum`];
  if (error !== null) parts.push(`alignment error rate ${Math.round(100 * error)}%`);
  return parts.join(" · ");
}

/** What the heads that are off change. */
function drawEffect() {
  const text = byId("effect-text");
  if (!data.off.length) {
    text.replaceChildren(make("p", { className: "note", textContent: page.server
      ? "Click “on” below a head to switch it off: its result becomes zero, and you see how the translation and its probability change."
      : "To switch heads off, serve the model (heedful serve) and open its Attention view: this file has no model." }));
    return;
  }
  const change = data.log_probability - data.all_on_log_probability;
  const factor = Math.exp(Math.abs(change));
  const times = factor < 1.005 ? "probability unchanged"
    : `probability ${change < 0 ? "falls" : "rises"} by a factor of ${factor >= 100 ? Math.round(Math.min(factor, 1e12)).toLocaleString("en") : factor.toFixed(factor < 10 ? 2 : 0)}`;
  const row = (name, ...value) => [make("dt", { textContent: name }), make("dd", {}, ...value)];
  const same = data.found_text === data.own_text;
  const chips = data.off.map(name => {
    const button = make("button", { type: "button", textContent: `${spokenHead(name)} ✕`, "aria-label": `Switch ${spokenHead(name)} on again` });
    button.addEventListener("click", () => switchHead(name));
    return make("li", {}, button);
  });
  const all = make("button", { type: "button", textContent: "switch all on" });
  all.addEventListener("click", () => { state.off = []; load(true); });
  text.replaceChildren(
    make("ul", { className: "chips", "aria-label": "heads that are off" }, ...chips, make("li", {}, all)),
    make("dl", {},
      ...row(`“${data.target_text}”`, make("span", { className: "big", id: "change", textContent: times }),
        ` (log-probability ${fixed(data.all_on_log_probability)} → ${fixed(data.log_probability)}, ${signed(change)})`),
      ...row("Translation, all heads on", data.own_text),
      ...row("Translation now", make("span", { id: "translation-now" }, ...(same ? [data.found_text] : markedText(data.found_text, data.own_text))),
        same ? " (the same)" : "")));
}

function drawAttention(grid = true) {
  for (const name of ["kind", "unit"]) document.querySelector(`#choice [name=${name}][value=${state[name]}]`).checked = true;
  byId("order").value = state.order;
  byId("threshold").value = state.threshold;
  byId("threshold-value").textContent = `${state.threshold}%`;
  drawEffect();
  if (grid) drawGrid();
  drawDetail();
}

/** Change how the attention is shown. */
function choose(change) {
  Object.assign(state, change);
  state.layer = Math.min(state.layer, data.layers[state.kind] - 1); // the stacks may differ in depth
  drawAttention("kind" in change || "unit" in change || "order" in change);
  remember();
}

byId("choice").addEventListener("input", event => {
  const { name, value } = event.target;
  choose({ [name]: name === "threshold" ? +value : value });
});
byId("choice").addEventListener("submit", event => event.preventDefault());

document.addEventListener("keydown", event => {
  if (state.view !== "attend" || !data) return;
  if (event.target.matches("input, select, textarea, [data-switch]") || event.altKey || event.ctrlKey || event.metaKey) return;
  const order = [...range(data.h), "mean"], at = order.indexOf(state.head);
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
