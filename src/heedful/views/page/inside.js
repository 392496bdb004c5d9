// The Inside view: step by step, next words, and why this word. The beam has its own file.

let stepsData = null, contrastData = null; // what the server computed for the last place and the last pair of words

const tokenOptions = (tokens, numbered = true) =>
  tokens.map((token, at) => new Option(numbered ? `${at + 1}. ${shown(token)}` : shown(token), at));
const drawers = { steps: showSteps, beam: drawBeam, next: drawNext, why: showContrast };

function drawInside() {
  state.position = Math.min(state.position, (state.stepKind === "encoder" && state.panel === "steps" ? data.source : data.target).tokens.length - 1);
  document.querySelector(`#panels [value=${state.panel}]`).checked = true;
  for (const panel of Object.keys(drawers)) byId(`panel-${panel}`).hidden = panel !== state.panel;
  return drawers[state.panel]();
}

function inspectPanel(change) {
  Object.assign(state, change);
  remember();
  return drawInside();
}

byId("panels").addEventListener("change", event => inspectPanel({ panel: event.target.value, step: 0, other: 0 }));

// Step by step

async function showSteps() {
  if (!page.server) Object.assign(state, { stepKind: data.steps.kind, stepLayer: data.steps.layer, stepHead: data.steps.head });
  const tokens = (state.stepKind === "encoder" ? data.source : { tokens: data.target.tokens }).tokens;
  state.position = Math.min(state.position, tokens.length - 1);
  state.stepLayer = Math.min(state.stepLayer, data.layers[state.stepKind] - 1);
  const form = byId("place").elements;
  form.layer.replaceChildren(...range(data.layers[state.stepKind]).map(at => new Option(`${at + 1} of ${data.layers[state.stepKind]}`, at)));
  form.head.replaceChildren(...range(data.h).map(at => new Option(`${at + 1} of ${data.h}`, at)));
  form.position.replaceChildren(...(state.stepKind === "encoder" ? tokenOptions(tokens)
    : tokens.map((token, at) => new Option(`${at + 1}. reads ${shown(at ? tokens[at - 1] : "<s>")}, predicts ${shown(token)}`, at))));
  form.kind.value = state.stepKind;
  form.layer.value = state.stepLayer;
  form.head.value = state.stepHead;
  form.position.value = state.position;
  for (const name of ["kind", "layer", "head"]) form[name].disabled = !page.server;
  byId("place-note").textContent = page.server ? ""
    : "This file has the steps of one head. For the others, open the Inside view of heedful serve.";
  await fetchSteps();
}

async function fetchSteps() {
  const place = { kind: state.stepKind, layer: state.stepLayer, head: state.stepHead, position: state.position };
  const key = JSON.stringify([place, inspected()]);
  if (!page.server) stepsData = { key, steps: data.steps.positions[state.position] };
  if (stepsData?.key !== key) {
    const found = await guarded(() => ask("inspect/steps", { ...inspected(), ...place }));
    if (!found) return;
    stepsData = { key, steps: found.positions[place.position] };
  }
  byId("step-list").replaceChildren(...stepsData.steps.map(stepCard));
  goToStep(state.step, false);
}

function stepCard(step, at) {
  const card = make("li", {},
    make("h2", {}, make("b", { textContent: at + 1 }), step.name, make("span", { className: "tag", textContent: step.shape })),
    make("p", { className: "note" }, step.formula, ` · section ${step.section} of the paper`));
  if (step.labels.length && !Array.isArray(step.values[0])) card.append(bars(step.labels, step.values));
  else card.append(...strip(step));
  card.append(make("code", { textContent: `${step.code[0]}:${step.code[1]}  ${step.code[2]}` }));
  return card;
}

/** Numbers as colours, blue above zero and orange below, with the number on hover and all of them as text. */
function strip(step) {
  const rows = Array.isArray(step.values[0]) ? step.values : [step.values];
  const largest = Math.max(1e-9, ...rows.flat().map(value => Math.abs(value ?? 0)));
  const canvas = make("canvas", { width: rows[0].length, height: rows.length, className: rows.length > 1 ? "matrix" : "" });
  canvas.setAttribute("aria-hidden", "true");
  if (rows.length > 1) canvas.style.height = `${Math.min(16 * rows.length, 360)}px`;
  const [above, below] = ["--weight", "--against"].map(name => colour(name).split(",").map(Number));
  const pen = canvas.getContext("2d"), image = pen.createImageData(canvas.width, canvas.height);
  rows.forEach((row, r) => row.forEach((value, c) =>
    image.data.set([...(value < 0 ? below : above), Math.round(255 * Math.abs(value) / largest)], 4 * (r * canvas.width + c))));
  pen.putImageData(image, 0, 0);
  const norm = Math.hypot(...rows.flat());
  const resting = `${rows.length > 1 ? `${rows.length} rows of ` : ""}${rows[0].length} numbers from ${fixed(Math.min(...rows.flat()), 3)} to ${fixed(Math.max(...rows.flat()), 3)}, norm ${fixed(norm, 2)}`;
  const value = make("p", { className: "value", textContent: resting });
  canvas.addEventListener("mousemove", event => {
    const box = canvas.getBoundingClientRect();
    const c = Math.min(rows[0].length - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * rows[0].length)));
    const r = Math.min(rows.length - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * rows.length)));
    value.textContent = `${step.labels[r] ? `${shown(step.labels[r])}, ` : ""}dimension ${c + 1}: ${rows[r][c].toString().replace("-", "−")}`;
  });
  canvas.addEventListener("mouseleave", () => { value.textContent = resting; });
  const numbers = make("details", {}, make("summary", { textContent: "all numbers" }));
  numbers.addEventListener("toggle", () => {
    if (numbers.children.length > 1) return;
    numbers.append(make("div", { className: "numbers", tabIndex: 0, role: "region", "aria-label": `numbers of ${step.name}`,
      textContent: rows.map((row, r) => `${step.labels[r] ? `${shown(step.labels[r])}: ` : ""}${row.join("  ")}`).join("\n") }));
  });
  return [canvas, value, numbers];
}

function bars(labels, values, chosen = -1, format = null) {
  const finite = values.filter(value => value !== null), largest = Math.max(1e-9, ...finite.map(Math.abs));
  const signs = finite.some(value => value < 0);
  return make("div", { className: "bars" }, ...labels.flatMap((name, at) => {
    const value = values[at], bar = make("i", { className: value < 0 ? "against" : "" });
    const share = 100 * Math.abs(value ?? 0) / largest * (signs ? 0.5 : 1);
    bar.style.width = `${share}%`;
    bar.style.left = signs ? `${value < 0 ? 50 - share : 50}%` : "0";
    return [make("span", { textContent: shown(name), className: at === chosen ? "is-chosen" : "" }), make("span", { className: "track" }, bar),
      make("span", { textContent: value === null ? "−∞ (masked)" : format ? format(value) : String(value).replace("-", "−") })];
  }));
}

function goToStep(step, scroll = true) {
  const cards = [...byId("step-list").children];
  if (!cards.length) return;
  state.step = Math.max(0, Math.min(step, cards.length - 1));
  cards.forEach((card, at) => { if (at === state.step) card.setAttribute("aria-current", "step"); else card.removeAttribute("aria-current"); });
  byId("step-count").textContent = `Step ${state.step + 1} of ${cards.length}: ${stepsData.steps[state.step].name}`;
  byId("back").disabled = state.step === 0;
  byId("forward").disabled = state.step === cards.length - 1;
  if (scroll) cards[state.step].scrollIntoView({ block: "nearest" });
  remember();
}

byId("back").addEventListener("click", () => goToStep(state.step - 1));
byId("forward").addEventListener("click", () => goToStep(state.step + 1));
byId("place").addEventListener("change", event => {
  const fields = { kind: "stepKind", layer: "stepLayer", head: "stepHead", position: "position" };
  const { name, value } = event.target;
  inspectPanel({ [fields[name]]: name === "kind" ? value : +value });
});

document.addEventListener("keydown", event => {
  if (state.view !== "inside" || state.panel !== "steps" || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.target.matches("input, select, textarea, .scroll, .numbers") || !["ArrowRight", "ArrowLeft"].includes(event.key)) return;
  event.preventDefault();
  goToStep(state.step + (event.key === "ArrowRight" ? 1 : -1));
});

// Next words

function drawNext() {
  const layers = data.next, last = layers.length - 1;
  if (state.lensLayer < 0 || state.lensLayer > last) state.lensLayer = last;
  const heads = ["position", ...layers.map((_, layer) => layer === last ? `layer ${layer + 1}: output` : `layer ${layer + 1}`)];
  const [red, green, blue] = colour("--weight").split(",");
  byId("lens").replaceChildren(
    make("thead", {}, make("tr", {}, ...heads.map(text => make("th", { textContent: text, scope: "col" })))),
    make("tbody", {}, ...data.target.tokens.map((token, position) => make("tr", {},
      make("th", { textContent: `${position + 1}. ${shown(token)}`, scope: "row" }),
      ...layers.map((layer, number) => {
        const one = layer[position], agrees = one.tokens[0] === token;
        const button = make("button", { type: "button", className: agrees ? "agrees" : "",
          "aria-pressed": String(position === state.position && number === state.lensLayer),
          "aria-label": `position ${position + 1}, layer ${number + 1}: ${shown(one.tokens[0])} ${percent(one.probabilities[0])}` },
        shown(one.tokens[0]), " ", make("small", { textContent: percent(one.probabilities[0]) }));
        button.style.backgroundColor = `rgba(${red}, ${green}, ${blue}, ${0.3 * one.probabilities[0]})`;
        button.addEventListener("click", () => inspectPanel({ position, lensLayer: number }));
        return make("td", {}, button);
      })))));
  const one = layers[state.lensLayer][state.position], token = data.target.tokens[state.position];
  byId("candidates-title").textContent = `Position ${state.position + 1}, after layer ${state.lensLayer + 1}`;
  byId("candidates").replaceChildren(bars(one.tokens, one.probabilities, one.tokens.indexOf(token), percent),
    make("p", { textContent: `The translation continues with “${shown(token)}”: probability ${percent(one.chosen)}, rank ${one.rank.toLocaleString("en")} of ${data.vocab_size.toLocaleString("en")}.` }));
}

// Why this word

async function showContrast() {
  const form = byId("contrast-form").elements, token = data.target.tokens[state.position];
  const last = data.next.at(-1)[state.position];
  const others = last.ids.map((id, at) => ({ id, name: last.tokens[at], p: last.probabilities[at] })).filter(one => one.name !== token);
  if (!others.some(one => one.id === state.other)) state.other = others[0].id;
  form.position.replaceChildren(...tokenOptions(data.target.tokens));
  form.position.value = state.position;
  form.other.replaceChildren(...others.map(one => new Option(`${shown(one.name)} (${percent(one.p)})`, one.id)));
  form.other.value = state.other;
  form.other.disabled = !page.server;
  form.other.title = page.server ? "" : "This file compares with the runner-up; other words need the server: heedful serve";
  remember();
  const fields = { position: state.position, other: state.other }, key = JSON.stringify([fields, inspected()]);
  if (!page.server) contrastData = { key, ...data.contrasts[state.position] };
  if (contrastData?.key !== key) {
    const found = await guarded(() => ask("inspect/contrast", { ...inspected(), ...fields }));
    if (!found) return;
    contrastData = { key, ...found };
  }
  drawContrast(contrastData, last.chosen);
}

const degree = rho => rho >= 0.7 ? "closely" : rho >= 0.4 ? "moderately" : rho >= 0.15 ? "weakly" : "not";

function drawContrast(found, p) {
  const times = Math.exp(Math.min(30, Math.abs(found.difference)));
  const strongest = found.value_zeroing.indexOf(Math.max(...found.value_zeroing)), attended = found.attention.indexOf(Math.max(...found.attention));
  byId("why-text").replaceChildren(
    make("b", { textContent: `“${shown(found.chosen)}” has probability ${percent(p)}, ${times >= 1000 ? Math.round(times).toLocaleString("en") : times.toFixed(1)} times ${found.difference >= 0 ? "that" : "less than that"} of “${shown(found.other)}” (difference of log-probabilities ${signed(found.difference)}). ` }),
    `Hiding “${shown(data.source.tokens[strongest])}” costs it most; the heads attend most to “${shown(data.source.tokens[attended])}”. `,
    `The order of the source tokens by attention agrees ${degree(found.agreement)} with input × gradient (ρ = ${fixed(found.agreement)}) and ${degree(found.agreement_zeroing)} with value zeroing (ρ = ${fixed(found.agreement_zeroing)}).`);
  const columns = [["attention", found.attention], ["input × gradient", found.input_times_gradient], ["value zeroing", found.value_zeroing]];
  byId("why-table").replaceChildren(
    make("thead", {}, make("tr", {}, make("th", { textContent: "source token", scope: "col" }), ...columns.map(([name]) => make("th", { textContent: name, scope: "col" })))),
    make("tbody", {}, ...data.source.tokens.map((token, at) => make("tr", {}, make("th", { textContent: shown(token), scope: "row" }),
      ...columns.map(([name, values]) => make("td", {}, signedBar(values, at, name === "attention"), make("small", { textContent: fixed(values[at], 3) })))))));
}

function signedBar(values, at, oneSided) {
  const largest = Math.max(1e-9, ...values.map(Math.abs)), value = values[at];
  const share = Math.abs(value) / largest * (oneSided ? 100 : 50), bar = make("i", { className: value < 0 ? "against" : "" });
  bar.style.width = `${share}%`;
  bar.style.left = oneSided ? "0" : `${value < 0 ? 50 - share : 50}%`;
  return make("span", { className: oneSided ? "track one-sided" : "track" }, bar);
}

byId("contrast-form").addEventListener("change", event => inspectPanel({ [event.target.name]: +event.target.value, ...(event.target.name === "position" ? { other: 0 } : {}) }));
