// One page, three views: which one is shown, and the sentence that two of them share.

const headings = { translate: "Translate", attend: "Attention of every head", inside: "Inside the Transformer" };
let loading = false, loadAgain = false, editTimer = 0;

/** Run a request for the Attention and Inside views; show its error instead of throwing it. */
async function guarded(work) {
  const complain = message => { byId("pair-error").textContent = message; byId("pair-error").hidden = !message; };
  complain("");
  try {
    return await work();
  } catch (error) {
    complain(error.message);
    return null;
  }
}

/** Ask the server for the sentence of the state, and show it. Requests never overlap. */
async function load(push = false) {
  if (loading) { loadAgain = true; return; }
  remember(push);
  if (!state.q.trim()) { data = null; draw(); return; }
  loading = true;
  byId("pair-state").textContent = "computing …";
  if (!state.source) await useFirstLanguages();
  const fields = inspected();
  const found = await guarded(() => ask("inspect", fields));
  loading = false;
  byId("pair-state").textContent = "";
  if (loadAgain) { loadAgain = false; await load(); return; }
  if (found) {
    loadedFields = JSON.stringify(fields);
    sentences = found.sentences;
    select(found.chosen);
    draw();
  }
}

async function useFirstLanguages() {
  const settings = await guarded(() => get("frontend/settings"));
  if (settings) Object.assign(state, { source: settings.language.source.code, target: settings.language.target.code });
}

/** Make a sentence the one that is shown, with a place in it that exists. */
function select(number) {
  const had = data;
  data = sentences[number - 1] ?? null;
  state.sentence = number;
  if (!data?.source) { data = null; return; }
  prepareAttention();
  if (!had) Object.assign(state, { layer: data.first_layer, stepLayer: data.first_layer });
  state.layer = Math.min(state.layer, data.layers[state.kind] - 1);
  state.stepLayer = Math.min(state.stepLayer, data.layers[state.stepKind] - 1);
  state.stepHead = Math.min(state.stepHead, data.h - 1);
  state.position = Math.min(state.position, data.target.tokens.length - 1);
  if (state.head !== "mean") state.head = Math.min(state.head, data.h - 1);
  state.other = had && had.source_text === data.source_text ? state.other : 0;
}

function draw() {
  const { view } = state;
  byId("heading").textContent = headings[view];
  document.title = view === "translate" || !data ? `heedful: ${headings[view].toLowerCase()}` : `${view === "attend" ? "Attention" : "Inside"}: ${data.source_text}`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  byId("translate-view").hidden = view !== "translate";
  byId("pair-form").hidden = view === "translate";
  for (const name of ["attend", "inside"]) byId(`${name}-view`).hidden = view !== name || !data;
  byId("model-facts").textContent = data ? `${data.source_language || "source"} → ${data.target_language || "target"} · ${data.layers.encoder === data.layers.decoder ? data.layers.encoder : `${data.layers.encoder} + ${data.layers.decoder}`} layers · ${data.h} heads · d_model ${data.d_model}` : "";
  if (view !== "translate") drawPair();
  if (data && view === "attend") drawAttention();
  if (data && view === "inside") drawInside();
  remember();
}

function drawPair() {
  const [first, second] = [byId("pair-source"), byId("pair-target")];
  if (document.activeElement !== first) first.value = page.server ? state.q : data.source_text;
  if (document.activeElement !== second) second.value = state.translation || (data?.target_text ?? "");
  byId("pair-source-label").textContent = `Source${data?.source_language ? ` (${data.source_language})` : ""}`;
  byId("pair-target-label").textContent = `${state.translation ? "Given translation" : "Translation"}${data?.target_language ? ` (${data.target_language})` : ""}`;
  for (const field of [first, second]) {
    field.readOnly = !page.server;
    field.title = page.server ? "" : "Editing needs the server: heedful serve";
  }
  byId("own").hidden = !state.translation || !page.server;
  byId("sentences").hidden = sentences.length < 2;
  byId("sentence").replaceChildren(...sentences.map((one, at) => new Option(`${at + 1}. ${one.source_text}`, at + 1)));
  byId("sentence").value = state.sentence;
  byId("probability").textContent = data ? `log-probability ${fixed(data.log_probability)} · probability ${percent(Math.exp(data.log_probability))} · ${data.target.tokens.length} tokens` : "";
}

function edited(event) {
  clearTimeout(editTimer);
  editTimer = setTimeout(() => {
    if (event.target.id === "pair-source") Object.assign(state, { q: event.target.value, sentence: 1, translation: "" });
    else Object.assign(state, { translation: event.target.value.trim(), ...(data ? { q: data.source_text, sentence: 1 } : {}) });
    load();
  }, PAUSE);
}

async function show(view, push = true) {
  state.view = view;
  if (push) remember(true);
  if (view === "translate") { draw(); await beginTranslate().catch(error => complain(`The server is not responding: ${error.message}.`)); return; }
  if (!page.server || current()) { draw(); return; }
  await load();
}

/** Whether `data` is what the state asks for. */
const current = () => data !== null && loadedFields === JSON.stringify(inspected());
let loadedFields = "";

document.addEventListener("click", event => {
  const link = event.target.closest?.("a[data-view]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  if (link.hasAttribute("aria-disabled")) return;
  show(link.dataset.view);
});
for (const id of ["pair-source", "pair-target"]) byId(id).addEventListener("input", edited);
byId("pair-form").addEventListener("submit", event => event.preventDefault());
byId("own").addEventListener("click", () => { state.translation = ""; load(true); });
byId("sentence").addEventListener("change", event => {
  state.sentence = +event.target.value;
  if (sentences[state.sentence - 1].source) { select(state.sentence); draw(); } else load(true);
});
document.addEventListener("click", event => {
  const button = event.target.closest?.("[data-save]");
  if (!button) return;
  const drawings = state.view === "attend" ? [byId("lines"), byId("heat")] : [byId("tree")];
  save(button.dataset.save, `heedful-${state.view}`, drawings);
});
window.addEventListener("hashchange", () => { readFragment(); draw(); });
window.addEventListener("popstate", () => {
  if (!page.server) return;
  const name = location.pathname.split("/").pop();
  state.view = ["attend", "inside"].includes(name) ? name : "translate";
  readQuery();
  if (current()) readFragment();
  show(state.view, false);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (data && state.view !== "translate") draw(); });

if (page.server) readQuery();
else {
  byId("offline-note").hidden = false;
  byId("offline-note").textContent = "This file works without a network. It has one translation; editing, switching heads off and the Translate view need the server: heedful serve.";
  for (const link of document.querySelectorAll('a[data-view="translate"]')) {
    link.setAttribute("aria-disabled", "true");
    link.removeAttribute("href");
    link.title = "Translating needs the server: heedful serve";
  }
}
if (sentences.length) {
  select(page.chosen);
  readFragment();
}
loadedFields = JSON.stringify(inspected());
show(state.view, false);
