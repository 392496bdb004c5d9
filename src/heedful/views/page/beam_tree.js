// The beam as a tree: a column per step, a row per rank among the extensions of that step.

function hypothesisText(number) {
  if (number in data.beam.texts) return data.beam.texts[number];
  const tokens = [];
  for (let at = number; at >= 0; at = data.beam.nodes[at][0]) tokens.unshift(data.beam.nodes[at][1]);
  return tokens.filter(token => token !== "</s>").join("").replaceAll("▁", " ").trim();
}

function drawBeam() {
  const { nodes, best, beam, alpha } = data.beam;
  const onBest = new Set();
  for (let at = best; at >= 0; at = nodes[at][0]) onBest.add(at);
  drawTree(nodes, onBest);
  drawHypotheses(nodes, best, alpha);
  byId("beam-note").textContent = `${beam} hypotheses live on at each step; dashed ones were pruned. α = ${alpha}.`;
  fillBeamSizes(beam);
}

function fillBeamSizes(beam) {
  const select = byId("beam"), sizes = [...new Set([1, 2, 3, 4, 5, 6, 8, beam])].sort((a, b) => a - b);
  select.replaceChildren(...sizes.map(size => new Option(size === 1 ? "1 (greedy)" : size, size)));
  select.value = beam;
  select.disabled = !page.server;
  select.title = page.server ? "" : "Another beam width needs the server: heedful serve";
}

function drawTree(nodes, onBest) {
  const svg = byId("tree"), columnWidth = 134, rowHeight = 30, box = 102;
  svg.replaceChildren();
  const steps = Math.max(...nodes.map(node => node[2])), ranks = new Map();
  const places = nodes.map(node => {
    const rank = ranks.get(node[2]) ?? 0;
    ranks.set(node[2], rank + 1);
    return { x: 46 + columnWidth * (node[2] - 1), y: 26 + rowHeight * rank };
  });
  const height = 26 + rowHeight * Math.max(...ranks.values()), total = 46 + columnWidth * steps;
  svg.setAttribute("viewBox", `0 0 ${total} ${height}`);
  svg.setAttribute("width", total);
  svg.setAttribute("height", height);
  range(steps).forEach(step => element("text", { x: 46 + columnWidth * step, y: 12, class: "soft" }, svg, `step ${step + 1}`));
  element("text", { x: 2, y: 42, class: "soft" }, svg, "<s>");
  nodes.forEach(([parent, , , , fate], at) => {
    const from = parent < 0 ? { x: 26 - box, y: 26 } : places[parent], to = places[at];
    const [x1, y1, x2, y2] = [from.x + box, from.y + 11, to.x, to.y + 11];
    element("path", { d: `M${x1},${y1}C${x1 + 18},${y1} ${x2 - 18},${y2} ${x2},${y2}`,
      class: `path ${fate} ${onBest.has(at) ? "best" : ""}` }, svg);
  });
  nodes.forEach((node, at) => drawNode(svg, node, at, places[at], box, onBest.has(at)));
}

function drawNode(svg, [parent, token, step, total, fate, score], at, place, box, isBest) {
  const group = element("g", { class: `node ${fate} ${isBest ? "best" : ""}` }, svg);
  const own = Math.exp(total - (parent < 0 ? 0 : data.beam.nodes[parent][3]));
  const text = `“${hypothesisText(at)}”${token === "</s>" ? " (ended)" : ""}: step ${step}, ${fate}, P(${shown(token)}) = ${percent(own)}, ` +
    `log-probability ${fixed(total)}${score === null ? "" : `, score ${fixed(score, 3)}`}`;
  element("title", {}, group, text);
  element("rect", { x: place.x, y: place.y, width: box, height: 23, rx: 5 }, group);
  const name = shown(token).length > 8 ? `${shown(token).slice(0, 7)}…` : shown(token);
  element("text", { x: place.x + 5, y: place.y + 15.5 }, group, name);
  element("text", { x: place.x + box - 4, y: place.y + 15.5, "text-anchor": "end" }, group, score === null ? fixed(total, 1) : fixed(score));
  group.addEventListener("mouseenter", () => { byId("tree-reading").textContent = text; });
}

function drawHypotheses(nodes, best, alpha) {
  const finished = nodes.map((node, at) => ({ at, length: node[2], total: node[3], score: node[5] }))
    .filter(one => one.score !== null).sort((a, b) => b.score - a.score);
  const head = ["", "finished hypothesis", "tokens", "log-probability", "length penalty", "score"];
  byId("hypotheses").replaceChildren(
    make("thead", {}, make("tr", {}, ...head.map((text, at) => make(at ? "th" : "td", { textContent: text, className: at > 1 ? "number" : "" })))),
    make("tbody", {}, ...finished.map((one, rank) => make("tr", { className: one.at === best ? "best" : "" },
      make("td", { textContent: rank + 1 }), make("td", { textContent: hypothesisText(one.at) || "(empty)" }),
      ...[one.length, fixed(one.total), fixed(((5 + one.length) / 6) ** alpha), fixed(one.score, 3)]
        .map(value => make("td", { textContent: value, className: "number" }))))));
  byId("beam-reason").textContent = beamReason(finished, alpha);
}

/** Why the search preferred its result. */
function beamReason(finished, alpha) {
  const [first, second] = finished;
  const score = `score = log-probability ÷ ((5 + tokens) / 6)^${alpha}`;
  if (!second) return `“${hypothesisText(first.at)}” is the only hypothesis that finished before the others could no longer win (${score}).`;
  const likelier = [...finished].sort((a, b) => b.total - a.total)[0];
  const won = `“${hypothesisText(first.at)}” wins with the highest score, ${fixed(first.score, 3)} against ${fixed(second.score, 3)} (${score}).`;
  if (likelier.at === first.at) return `${won} It also has the highest probability: ${Math.exp(Math.min(20, first.total - second.total)).toFixed(1)} times that of “${hypothesisText(second.at)}”.`;
  return `${won} “${hypothesisText(likelier.at)}” is more probable (${fixed(likelier.total)}), but it has ${likelier.length} tokens instead of ${first.length}: the length penalty decides.`;
}

byId("beam").addEventListener("change", event => { state.beam = +event.target.value; load(true); });
