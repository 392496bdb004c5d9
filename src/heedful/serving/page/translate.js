"use strict";
// The page translates while you type: a moment after the last key, and never two requests at once.
const PAUSE = 350; // milliseconds
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
  find("detected").textContent = found ? `${named(found.language)}, ${found.confidence} % sure` : "";
  find("copy").disabled = !answer.translatedText;
  find("attend").disabled = !answer.translatedText || source.value === "auto";
}

async function translate() {
  clearTimeout(timer);
  if (running) { again = true; return; }
  complain("");
  const length = counted();
  if (!text.value.trim()) { show({ translatedText: "" }); return; }
  if (length > limit) { complain("The text is too long for one request."); return; }
  running = true;
  output.classList.add("old");
  const began = performance.now();
  try {
    const answer = await fetch("translate", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ q: text.value, source: source.value, target: target.value, alternatives: ALTERNATIVES }),
    });
    const content = await answer.json();
    if (!answer.ok) throw new Error(content.error);
    show(content);
    find("state").textContent = `${((performance.now() - began) / 1000).toFixed(2)} s`;
  } catch (error) {
    complain(error instanceof TypeError ? "The server does not answer." : error.message);
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
  fill(source, [...sources, { code: "auto", name: "detect" }], settings.language.source.code);
  targets();
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
  find("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(output.textContent);
    find("state").textContent = "copied";
  });
}

begin().catch((error) => complain(`The server does not answer: ${error.message}`));
