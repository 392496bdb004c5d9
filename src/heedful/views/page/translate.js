// The Translate view: translate while the user types, with at most one request at a time.

const LONGEST_ADDRESS = 2000; // characters; longer text is left out of the address
const ALTERNATIVES = 2;
const EXAMPLES = {
  en: ["The old man is looking for his red hat.", "He says that his uncle bought a ring for my aunt.", "When will the guests come into the house?"],
  de: ["Der alte Mann sucht seinen roten Hut.", "Er sagt, dass sein Onkel einen Ring für meine Tante gekauft hat.", "Wann werden die Gäste ins Haus kommen?"],
  fr: ["Le vieil homme cherche son chapeau rouge.", "Comme les enfants étaient fatigués, ils sont rentrés tôt."],
};
const source = byId("source"), target = byId("target"), text = byId("text"), output = byId("translation");
let languages = [], limit = Infinity, timer = 0, running = false, again = false, begun = null;

async function get(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

function fill(select, options, wanted) {
  select.replaceChildren(...options.map(({ code, name }) => new Option(name, code, false, code === wanted)));
}

const named = code => languages.find(language => language.code === code)?.name ?? code;

function targets() {
  const codes = source.value === "auto"
    ? [...new Set(languages.flatMap(language => language.targets))]
    : languages.find(language => language.code === source.value).targets;
  fill(target, codes.map(code => ({ code, name: named(code) })), target.value);
  const possible = languages.find(language => language.code === target.value)?.targets.includes(source.value);
  byId("swap").disabled = !possible;
  byId("swap-note").textContent = possible ? "" : source.value === "auto"
    ? "To swap, choose the source language." : `No model here translates from ${named(target.value)} to ${named(source.value)}.`;
  showExamples();
}

function showExamples() {
  const examples = EXAMPLES[source.value] ?? [];
  byId("examples").hidden = Boolean(text.value) || !examples.length;
  byId("example-list").replaceChildren(...examples.map(example => {
    const button = make("button", { type: "button", textContent: example });
    button.lang = source.value;
    button.addEventListener("click", () => { text.value = example; text.focus(); translate(); });
    return make("li", {}, button);
  }));
}

function complain(message) {
  byId("error").textContent = message;
  byId("error").hidden = !message;
}

function counted() {
  const length = [...text.value].length;
  byId("count").textContent = Number.isFinite(limit) ? `${length.toLocaleString("en")} of ${limit.toLocaleString("en")} characters` : "";
  byId("count").classList.toggle("over", length > limit);
  byId("clear").disabled = !text.value;
  byId("clear").title = text.value ? "" : "There is no text to clear";
  byId("examples").hidden = Boolean(text.value) || !byId("example-list").children.length;
  return length;
}

/** In words, how sure the detection is: its confidences are calibrated. */
function detection({ language, confidence }) {
  if (confidence >= 95) return `${named(language)} (detected)`;
  if (confidence >= 75) return `probably ${named(language)} (${Math.round(confidence)}%)`;
  if (confidence > 0) return `perhaps ${named(language)} (${Math.round(confidence)}%); choose the language if that is wrong`;
  return `language unknown; read as ${named(language)}`;
}

function showTranslation(answer) {
  output.textContent = answer.translatedText;
  output.lang = target.value;
  const others = answer.alternatives ?? [];
  byId("alternatives").replaceChildren(...others.map(other => {
    const item = make("li", {}, ...markedText(other, answer.translatedText));
    item.lang = target.value;
    return item;
  }));
  byId("others").hidden = others.length === 0;
  const found = answer.detectedLanguage;
  byId("detected").textContent = found ? detection(found) : "";
  byId("state").textContent = "";
  byId("copy").disabled = !answer.translatedText;
  byId("copy").title = answer.translatedText ? "" : "There is no translation to copy";
  byId("attend").hidden = !answer.translatedText;
  Object.assign(state, { source: found?.language ?? source.value });
  for (const view of ["attend", "inside"]) {
    for (const link of document.querySelectorAll(`a[data-view=${view}]`)) link.href = addressOf(view);
  }
}

// Clear the old translation, which does not match the new text.
function fail(message) {
  showTranslation({ translatedText: "" });
  complain(message);
}

function rememberTranslation() {
  const changed = state.q !== text.value || state.target !== target.value;
  Object.assign(state, { q: text.value, source: source.value, target: target.value });
  if (changed) Object.assign(state, { sentence: 1, translation: "", off: [], beam: 0 });
  const kept = state.q;
  if (state.q.length > LONGEST_ADDRESS) state.q = "";
  remember();
  state.q = kept;
}

async function copy() {
  // Browsers offer the clipboard API only on HTTPS and localhost; elsewhere copy the selection, as Ctrl-C does.
  let copied = true;
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(output.textContent).catch(() => { copied = false; });
  } else {
    getSelection().selectAllChildren(output);
    copied = document.execCommand("copy");
  }
  byId("state").textContent = copied ? "copied" : "The browser did not allow copying. Select the text and press Ctrl-C.";
}

async function translate() {
  clearTimeout(timer);
  if (running) { again = true; return; }
  complain("");
  const length = counted();
  rememberTranslation();
  if (!text.value.trim()) { showTranslation({ translatedText: "" }); return; }
  if (length > limit) { fail(`The text is too long: at most ${limit.toLocaleString("en")} characters.`); return; }
  running = true;
  output.classList.add("old");
  const began = performance.now();
  try {
    showTranslation(await ask("translate", { q: text.value, source: source.value, target: target.value, alternatives: ALTERNATIVES }));
    byId("state").textContent = `${((performance.now() - began) / 1000).toFixed(2)} s`;
  } catch (error) {
    fail(error.message);
  } finally {
    running = false;
    output.classList.remove("old");
    if (again) { again = false; translate(); }
  }
}

function soon() {
  counted();
  clearTimeout(timer);
  timer = setTimeout(translate, PAUSE);
}

/** Load the languages once, then show the text and languages of the state. */
async function beginTranslate() {
  begun ??= Promise.all([get("languages"), get("frontend/settings")]);
  const [all, settings] = await begun;
  languages = all;
  limit = settings.charLimit;
  const choices = [...languages.filter(language => language.targets.length), { code: "auto", name: "detect" }];
  const known = choices.some(({ code }) => code === state.source);
  fill(source, choices, known ? state.source : settings.language.source.code);
  targets();
  if ([...target.options].some(({ value }) => value === state.target)) target.value = state.target;
  targets();
  text.value = state.q || text.value;
  counted();
  if (text.value) translate();
}

text.addEventListener("input", soon);
source.addEventListener("change", () => { targets(); translate(); });
target.addEventListener("change", () => { targets(); translate(); });
byId("form").addEventListener("submit", event => event.preventDefault());
byId("clear").addEventListener("click", () => { text.value = ""; text.focus(); translate(); });
byId("copy").addEventListener("click", copy);
byId("swap").addEventListener("click", () => {
  const wanted = source.value, words = output.textContent;
  source.value = target.value;
  targets();
  target.value = wanted;
  targets();
  text.value = words || text.value;
  translate();
});
