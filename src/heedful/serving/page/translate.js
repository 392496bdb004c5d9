"use strict";
// Translate while the user types: shortly after the last key, with at most one request at a time.
// The URL holds the languages and the text, so that the page can be reloaded and shared.
const PAUSE = 350; // milliseconds
const LONGEST_ADDRESS = 2000; // characters; longer text is left out of the URL
const ALTERNATIVES = 2;
const find = (id) => document.getElementById(id);
const source = find("source"), target = find("target"), text = find("text"), output = find("translation");
let languages = [], limit = Infinity, timer = 0, running = false, again = false;

async function get(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

function fill(select, options, wanted) {
  select.replaceChildren(...options.map(({ code, name }) => new Option(name, code, false, code === wanted)));
}

function named(code) {
  return languages.find((language) => language.code === code)?.name ?? code;
}

function targets() {
  const codes = source.value === "auto"
    ? [...new Set(languages.flatMap((language) => language.targets))]
    : languages.find((language) => language.code === source.value).targets;
  fill(target, codes.map((code) => ({ code, name: named(code) })), target.value);
  find("swap").disabled = !languages.find((language) => language.code === target.value)?.targets.includes(source.value);
}

function complain(message) {
  find("error").textContent = message;
  find("error").hidden = !message;
}

function counted() {
  const length = [...text.value].length;
  find("count").textContent = Number.isFinite(limit) ? `${length.toLocaleString()} of ${limit.toLocaleString()} characters` : "";
  find("count").classList.toggle("over", length > limit);
  return length;
}

function show(answer) {
  output.textContent = answer.translatedText;
  output.lang = target.value;
  const others = answer.alternatives ?? [];
  find("alternatives").replaceChildren(...others.map((other) => {
    const item = document.createElement("li");
    item.textContent = other;
    item.lang = target.value;
    return item;
  }));
  find("others").hidden = others.length === 0;
  const found = answer.detectedLanguage;
  find("detected").textContent = found ? `${named(found.language)}, ${found.confidence}% confidence` : "";
  find("state").textContent = "";
  find("copy").disabled = !answer.translatedText;
  find("attend").hidden = !answer.translatedText;
  find("attend").href = address("attend", found?.language ?? source.value);
}

// Clear the old translation, which does not match the new text.
function fail(message) {
  show({ translatedText: "" });
  complain(message);
}

function address(path, from) {
  return `${path}?${new URLSearchParams({ q: text.value, source: from, target: target.value })}`;
}

function remember() {
  const fits = text.value && text.value.length <= LONGEST_ADDRESS;
  const languagesOnly = `?${new URLSearchParams({ source: source.value, target: target.value })}`;
  history.replaceState(null, "", fits ? address("", source.value) : languagesOnly);
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
  find("state").textContent = copied ? "copied" : "The browser did not allow copying. Select the text and press Ctrl-C.";
}

async function translate() {
  clearTimeout(timer);
  if (running) { again = true; return; }
  complain("");
  const length = counted();
  remember();
  if (!text.value.trim()) { show({ translatedText: "" }); return; }
  if (length > limit) { fail(`The text is too long: at most ${limit.toLocaleString()} characters.`); return; }
  running = true;
  output.classList.add("old");
  const began = performance.now();
  try {
    const answer = await fetch("translate", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ q: text.value, source: source.value, target: target.value, alternatives: ALTERNATIVES }),
    });
    const content = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(content.error ?? `The server answered with status ${answer.status}.`);
    show(content);
    find("state").textContent = `${((performance.now() - began) / 1000).toFixed(2)} s`;
  } catch (error) {
    fail(error instanceof TypeError ? "The server is not responding." : error.message);
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

async function begin() {
  const [all, settings] = await Promise.all([get("languages"), get("frontend/settings")]);
  languages = all;
  limit = settings.charLimit;
  const sources = languages.filter((language) => language.targets.length);
  const asked = new URLSearchParams(location.search);
  const choices = [...sources, { code: "auto", name: "detect" }];
  const known = choices.some(({ code }) => code === asked.get("source"));
  fill(source, choices, known ? asked.get("source") : settings.language.source.code);
  targets();
  if ([...target.options].some(({ value }) => value === asked.get("target"))) target.value = asked.get("target");
  targets();
  text.value = asked.get("q") ?? text.value;
  counted();
  text.addEventListener("input", soon);
  source.addEventListener("change", () => { targets(); translate(); });
  target.addEventListener("change", () => { targets(); translate(); });
  find("swap").addEventListener("click", () => {
    const wanted = source.value, words = output.textContent;
    source.value = target.value;
    targets();
    target.value = wanted;
    targets();
    text.value = words || text.value;
    translate();
  });
  find("copy").addEventListener("click", copy);
  if (text.value) translate();
}

begin().catch((error) => complain(`The server is not responding: ${error.message}.`));
