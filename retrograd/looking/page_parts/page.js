// The graph, the details of an operation, the two sources and the search. Whatever comes from the program is set as text.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = new Map(data.nodes.map((n) => [n.id, n]));
const groups = new Map(data.groups.map((g) => [g.id, g]));
const get = (id) => document.getElementById(id);
const LEVELS = ["part", "function", "loop", "line", "operation"];
const MANY = 60; // operations from which lines are drawn first
const MOST = 700; // shapes that one drawing may have
const BIG_STEP = 1.25;
const MOST_ZOOM = 1.2;
const READABLE = 0.7; // the zoom from which labels can be read
const LEAST_ZOOM = 0.1; // what is still larger begins at its upper left corner
const BARS = 24; // pixels of the box that its frame and a scroll bar take
const DRAG = 4; // pixels that a mouse moves before it drags the drawing

const open = new Set(); // groups that are shown as frames around their members
let chosen = null;
let svg = null;
let zoom = 1;
let sideways = false; // the function leads to the right, not down
let fitted = true; // until the reader zooms
let natural = [1, 1];

function inSeconds(seconds) {
  const [scale, unit] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]].find(([s]) => seconds >= 0.9995 * s) || [1e-9, "ns"];
  const shown = seconds / scale;
  return `${shown.toFixed(shown < 9.995 ? 2 : shown < 99.95 ? 1 : 0)} ${unit}`;
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// --- what is drawn ---------------------------------------------------------------------------------------

function above(group) {
  const found = [];
  for (let g = groups.get(group); g; g = groups.get(g.parent)) found.push(g);
  return found.reverse(); // the outermost first
}

function shownAs(node) {
  const closed = above(node.group).find((g) => !open.has(g.id));
  return closed ? closed.id : `n${node.id}`;
}

function openTo(level) {
  open.clear();
  const most = LEVELS.indexOf(level);
  for (const g of groups.values()) if (LEVELS.indexOf(g.kind) < most) open.add(g.id);
}

function shapes() {
  return new Set(data.nodes.map(shownAs)).size;
}

const back = (id) => byId.get(id).part !== "forward";
const quoted = (text) => JSON.stringify(text); // DOT reads the escapes of JSON

function dot(direction) {
  const frames = new Map([["", []]]);
  const seen = new Set();
  const frame = (id) => {
    if (!frames.has(id)) {
      frames.set(id, []);
      const parent = groups.get(id).parent;
      frame(parent || "").push({ frame: id });
    }
    return frames.get(id);
  };
  for (const node of data.nodes) {
    const path = above(node.group);
    const closed = path.findIndex((g) => !open.has(g.id));
    const around = closed < 0 ? path : path.slice(0, closed);
    const home = frame(around.length ? around[around.length - 1].id : "");
    const id = closed < 0 ? `n${node.id}` : path[closed].id;
    if (seen.has(id)) continue;
    seen.add(id);
    home.push({ id, node: closed < 0 ? node : null, group: closed < 0 ? null : path[closed] });
  }
  const body = (items) =>
    items
      .map((item) => {
        if (item.frame) {
          const g = groups.get(item.frame);
          const head = `subgraph cluster_${g.id} { id=${g.id} class="${g.part}" label=${quoted(g.label.split("\n")[0])}`;
          return `${head}\n${body(frames.get(g.id))}\n}`;
        }
        const part = (item.node || item.group).part;
        const label = item.node ? nodeLabel(item.node) : `${item.group.label}\n${item.group.size} operations`;
        return `${item.id} [id=${item.id} class="${part}" label=${quoted(label)}${item.group ? " peripheries=2" : ""}]`;
      })
      .join("\n");
  const edges = new Set();
  for (const [a, b] of data.edges) {
    const [from, to] = [shownAs(byId.get(a)), shownAs(byId.get(b))];
    if (from === to) continue;
    // The adjoint stands beside the function and leads back (up, or left), so that what is kept goes across and not far.
    const [first, second] = [back(a), back(b)];
    if (first !== second) edges.add(`${from} -> ${to} [constraint=false]`);
    else edges.add(first ? `${to} -> ${from} [dir=back]` : `${from} -> ${to}`);
  }
  const style =
    `rankdir=${direction} ` +
    'nodesep=0.18 ranksep=0.3 bgcolor="transparent" fontname="Helvetica" fontsize=10 style="rounded"\n' +
    'node [shape=box style="rounded,filled" fontname="Helvetica" fontsize=10 margin="0.09,0.04" height=0.3]\nedge [arrowsize=0.55]';
  const fast = seen.size > 250 ? "nslimit=2 nslimit1=2 mclimit=0.3 splines=polyline" : "";
  return `digraph {\n${style}\n${fast}\n${body(frames.get(""))}\n${[...edges].join("\n")}\n}`;
}

function nodeLabel(node) {
  const value = node.values[0] || "";
  return value ? `${node.label}\n${value}` : node.label;
}

const engine = globalThis.Graphviz.load();

async function draw(focus) {
  const begun = performance.now();
  const count = shapes();
  if (count > MOST) {
    get("state").textContent = `${count} shapes are too many for one drawing: open single groups, or search.`;
    return false;
  }
  const graphviz = await engine;
  svg = laid(graphviz, "TB");
  sideways = false;
  if (fitting(svg) < READABLE && count <= 4 * MANY) {
    const other = laid(graphviz, "LR"); // the adjoint below the function, which is wide
    sideways = fitting(other, true) > fitting(svg);
    if (sideways) svg = other;
  }
  for (const title of svg.querySelectorAll("title")) title.remove();
  for (const shape of svg.querySelectorAll(".node")) {
    shape.setAttribute("tabindex", "0");
    shape.setAttribute("role", "button");
    shape.setAttribute("aria-label", spoken(shape.id));
  }
  natural = sizeOf(svg);
  get("graph").replaceChildren(svg);
  fit();
  marked();
  if (focus) reveal(focus);
  const took = Math.round(performance.now() - begun);
  get("state").textContent = `${count} shapes for ${data.nodes.filter((n) => !n.copy).length} operations, drawn in ${took} ms`;
  document.documentElement.dataset.drawn = String(count);
  document.documentElement.dataset.took = String(took);
  return true;
}

function spoken(id) {
  const node = id.startsWith("n") ? byId.get(Number(id.slice(1))) : null;
  if (node) return `${node.label}, ${node.values.join(", ")}, ${node.where}`;
  const g = groups.get(id);
  return `${g.kind} ${g.label}, ${g.size} operations, closed`;
}

function laid(graphviz, direction) {
  const text = graphviz.layout(dot(direction), "svg", "dot");
  return document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
}

function sizeOf(drawing) {
  return [drawing.viewBox.baseVal.width, drawing.viewBox.baseVal.height];
}

// The zoom at which all is seen, or, if it can be read, the whole width: then function and adjoint begin side by side.
function fitting(drawing, whole = sideways) {
  const pane = get("graph"); // its outer size: the bars of an earlier drawing do not count
  const [width, height] = sizeOf(drawing);
  const across = (pane.offsetWidth - BARS) / width;
  const all = Math.min(across, (pane.offsetHeight - BARS) / height);
  return Math.min(MOST_ZOOM, across < READABLE || whole ? all : across);
}

function fit() {
  fitted = true;
  zoom = Math.max(fitting(svg), LEAST_ZOOM);
  scaled();
  get("graph").scrollTo(0, 0);
}

function scaled() {
  svg.setAttribute("width", natural[0] * zoom);
  svg.setAttribute("height", natural[1] * zoom);
}

// Zoom so that a point of the window, at first the middle of the box, stays over the same place of the drawing.
function zoomBy(factor, x, y) {
  const box = get("graph").getBoundingClientRect();
  const [atX, atY] = [x ?? box.x + box.width / 2, y ?? box.y + box.height / 2];
  const before = svg.getBoundingClientRect();
  fitted = false;
  zoom *= factor;
  scaled();
  const after = svg.getBoundingClientRect();
  get("graph").scrollLeft += after.x + ((atX - before.x) / before.width) * after.width - atX;
  get("graph").scrollTop += after.y + ((atY - before.y) / before.height) * after.height - atY;
}

function shape(id) {
  return svg && svg.querySelector(`#${id}`);
}

function reveal(id) {
  const found = shape(id);
  if (!found) return;
  if (zoom < READABLE) zoomBy(READABLE / zoom);
  found.scrollIntoView({ block: "center", inline: "center" });
  found.focus({ preventScroll: true });
}

async function toggle(id, closing) {
  if (closing) open.delete(id);
  else open.add(id);
  if (!(await draw(closing ? id : null))) {
    open.delete(id);
    await draw(id);
  }
  pressed(null);
}

// --- one operation ---------------------------------------------------------------------------------------

function related() {
  if (!chosen) return [];
  const back = data.nodes.filter((n) => n.adjoint.includes(chosen.id)).map((n) => n.id);
  return [...chosen.adjoint, ...back];
}

function marked() {
  if (!svg) return;
  for (const old of svg.querySelectorAll(".chosen, .related")) old.classList.remove("chosen", "related");
  if (!chosen) return;
  for (const id of related()) shape(shownAs(byId.get(id)))?.classList.add("related");
  shape(shownAs(chosen))?.classList.add("chosen");
}

function link(id) {
  const node = byId.get(id);
  const button = element("button", { type: "button", class: node.part }, `${node.label} ${node.values[0] || ""}`);
  button.addEventListener("click", () => choose(node, true));
  return button;
}

function row(list, name, ...content) {
  if (content.length && content.some((c) => c !== "")) list.append(element("dt", {}, name), element("dd", {}, ...content));
}

function lineText(node) {
  const found = node.line && data.source[node.line[0]].lines.find(([n]) => n === node.line[1]);
  return found ? found[1].trim() : "";
}

function choose(node, going) {
  chosen = node;
  const list = element("dl");
  row(list, "part", { forward: "the function", adjoint: "the adjoint", again: "computed again", later: "computed later" }[node.part]);
  row(list, "line", node.where);
  row(list, "code", element("code", {}, lineText(node)));
  row(list, "generated", element("pre", {}, node.statements.join("\n") || "part of another statement"));
  row(list, "result", node.values.join(", "));
  row(list, "bytes", node.bytes);
  row(list, "family", node.family);
  row(list, "flops", node.flops);
  row(list, "predicted", node.predicted);
  row(list, "measured", node.measured);
  row(list, "its adjoint", ...node.adjoint.map(link));
  row(list, "adjoint of", ...data.nodes.filter((n) => n.adjoint.includes(node.id)).map((n) => link(n.id)));
  row(list, "reads", ...data.edges.filter(([, b]) => b === node.id).map(([a]) => link(a)));
  row(list, "read by", ...data.edges.filter(([a]) => a === node.id).map(([, b]) => link(b)));
  get("detail").replaceChildren(element("h3", {}, node.label), list);
  light(new Set([node.id]), node.line);
  marked();
  if (going) reveal(shownAs(node));
}

function chooseGroup(g) {
  chosen = null;
  const members = data.nodes.filter((n) => above(n.group).some((x) => x.id === g.id));
  const list = element("dl");
  row(list, "holds", `${members.length} operations`);
  const spent = members.reduce((sum, n) => sum + n.spent, 0);
  row(list, "measured", spent ? inSeconds(spent) : "");
  row(list, "operations", ...members.slice(0, 40).map((n) => link(n.id)));
  const button = element("button", { type: "button" }, "open ( + )");
  button.addEventListener("click", () => toggle(g.id, false));
  get("detail").replaceChildren(element("h3", {}, g.label), button, list);
  light(new Set(members.map((n) => n.id)), null);
  marked();
}

// --- the two sources -------------------------------------------------------------------------------------

const mine = new Map(); // rows of the program, by file and line
const made = new Map(); // rows of the generated source, by operation

function sources() {
  const spent = new Map();
  let most = 0;
  for (const node of data.nodes) {
    if (!node.line) continue;
    const key = node.line.join(":");
    spent.set(key, (spent.get(key) || 0) + node.spent);
    most = Math.max(most, spent.get(key));
  }
  for (const file of data.source) {
    get("mine").append(element("div", { class: "file" }, file.name));
    for (const [n, text] of file.lines) {
      const key = `${file.file}:${n}`;
      const time = spent.get(key);
      const said = time ? inSeconds(time) : "";
      const bar = element("span", { class: "spent" }, said);
      if (time) bar.style.setProperty("--share", `${(100 * time) / most}%`);
      const line = element("div", { class: "row" }, bar, element("span", { class: "number" }, String(n)), text);
      const nodes = data.nodes.filter((x) => x.line && x.line[0] === file.file && x.line[1] === n);
      if (nodes.length) linked(line, () => light(new Set(nodes.map((x) => x.id)), [file.file, n], true));
      mine.set(key, line);
      get("mine").append(line);
    }
  }
  for (const piece of data.code) {
    get("made").append(element("div", { class: "file" }, piece.part));
    piece.lines.forEach(([text, id], k) => {
      const line = element("div", { class: "row" }, element("span"), element("span", { class: "number" }, String(k + 1)), text);
      if (id !== null && byId.has(id)) {
        linked(line, () => choose(byId.get(id), true));
        made.set(id, [...(made.get(id) || []), line]);
      }
      get("made").append(line);
    });
  }
}

function linked(line, act) {
  line.classList.add("linked");
  line.setAttribute("tabindex", "0");
  line.setAttribute("role", "button");
  line.addEventListener("click", act);
  line.addEventListener("keydown", (event) => {
    if (event.key === "Enter") act();
  });
}

function within(pane, line) {
  pane.scrollTop += line.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 3;
}

function light(ids, place, staying) {
  for (const old of document.querySelectorAll(".lit")) old.classList.remove("lit");
  const line = place && mine.get(place.join(":"));
  if (line) {
    line.classList.add("lit");
    if (!staying) within(get("mine"), line);
  }
  const rows = [...ids].flatMap((id) => made.get(id) || []);
  rows.forEach((x) => x.classList.add("lit"));
  if (rows.length) within(get("made"), rows[0]);
}

// --- search, keys and buttons ----------------------------------------------------------------------------

function searched(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (n) => `${n.label} ${n.values.join(" ")} ${n.where} ${n.statements.join(" ")} ${lineText(n)} ${n.family}`.toLowerCase();
  return words.length ? data.nodes.filter((n) => words.every((w) => has(n).includes(w))) : [];
}

function search() {
  const found = searched(get("search").value);
  const list = get("found");
  list.hidden = !get("search").value.trim();
  list.replaceChildren(element("div", { class: "hint" }, `${found.length} operations`));
  for (const node of found.slice(0, 50)) {
    const button = element("button", { type: "button", role: "option" }, `${node.label}  ${node.values.join(", ")}  ${node.where}`);
    button.addEventListener("click", () => choose(node, true));
    list.append(button);
  }
}

function pressed(level) {
  for (const button of get("levels").children) button.setAttribute("aria-pressed", String(button.value === level));
}

async function show(level) {
  const before = [...open];
  openTo(level);
  if (await draw()) return pressed(level);
  open.clear();
  before.forEach((id) => open.add(id));
}

function neighbour(id, step) {
  const ends = data.edges.map(([a, b]) => [shownAs(byId.get(a)), shownAs(byId.get(b))]).filter(([a, b]) => a !== b);
  const found = ends.find(([a, b]) => (step > 0 ? a : b) === id);
  return found && found[step > 0 ? 1 : 0];
}

function act(id) {
  if (id.startsWith("n")) choose(byId.get(Number(id.slice(1))));
  else chooseGroup(groups.get(id));
}

get("graph").addEventListener("click", (event) => {
  const target = event.target.closest(".node, .cluster");
  if (!target || dragged) return;
  if (target.classList.contains("cluster")) {
    if (event.target.closest("text")) toggle(target.id, true);
  } else {
    act(target.id);
  }
});
get("graph").addEventListener("dblclick", (event) => {
  const target = event.target.closest(".node");
  if (target && groups.has(target.id)) toggle(target.id, false);
});
get("graph").addEventListener("keydown", (event) => {
  const target = event.target.closest(".node");
  if (!target) return;
  const id = target.id;
  const moved = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
  if (event.key === "Enter" || event.key === " ") act(id);
  else if (event.key === "+" && groups.has(id)) toggle(id, false);
  else if (event.key === "-" && id.startsWith("n")) toggle(byId.get(Number(id.slice(1))).group, true);
  else if (moved && neighbour(id, moved)) reveal(neighbour(id, moved));
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target.tagName !== "INPUT") {
    event.preventDefault();
    get("search").focus();
  } else if (event.key === "Escape") {
    get("search").value = "";
    search();
  }
});
get("search").addEventListener("input", search);
get("search").addEventListener("keydown", (event) => {
  const first = event.key === "Enter" && searched(get("search").value)[0];
  if (first) choose(first, true);
});
for (const [id, factor] of [["in", BIG_STEP], ["out", 1 / BIG_STEP]])
  get(id).addEventListener("click", () => zoomBy(factor));
get("fit").addEventListener("click", fit);
get("graph").addEventListener(
  "wheel",
  (event) => {
    if (!svg || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    zoomBy(event.deltaY < 0 ? BIG_STEP : 1 / BIG_STEP, event.clientX, event.clientY);
  },
  { passive: false },
);
let dragged = false;
get("graph").addEventListener("pointerdown", (begun) => {
  dragged = false;
  const pane = get("graph");
  const bar = begun.offsetX > pane.clientWidth || begun.offsetY > pane.clientHeight;
  if (begun.pointerType !== "mouse" || begun.button !== 0 || (begun.target === pane && bar)) return;
  const from = [pane.scrollLeft, pane.scrollTop];
  const moved = (event) => {
    const [right, down] = [event.clientX - begun.clientX, event.clientY - begun.clientY];
    dragged ||= Math.hypot(right, down) > DRAG;
    if (dragged) pane.scrollTo(from[0] - right, from[1] - down);
  };
  addEventListener("pointermove", moved);
  addEventListener("pointerup", () => removeEventListener("pointermove", moved), { once: true });
});
addEventListener("resize", () => svg && fitted && fit());
const kinds = new Set([...groups.values()].map((g) => g.kind));
for (const level of LEVELS) {
  if (level !== "operation" && !kinds.has(level)) continue;
  const button = element("button", { type: "button", value: level, "aria-pressed": "false" }, `${level}s`);
  button.addEventListener("click", () => show(level));
  get("levels").append(button);
}
sources();
const wanted = data.nodes.length <= MANY ? ["operation"] : ["line", "loop", "function", "part"];
for (const level of wanted) {
  openTo(level);
  if (shapes() <= 4 * MANY || level === wanted[wanted.length - 1]) {
    await show(level);
    break;
  }
}
document.documentElement.dataset.ready = "yes";
