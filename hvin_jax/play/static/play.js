// The page: what people do becomes a map, the map a question, the answer a picture.

import { Thought, draw, legend } from "./picture.js";
import { fileName, pictureOf, save } from "./saving.js";
import { Maze, fromAddress, toAddress } from "./state.js";
import * as theme from "./theme.js";

const $ = (id) => document.getElementById(id);
const PAGE = Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
const panels = [...document.querySelectorAll(".panel")].map((element) => ({
  element,
  canvas: element.querySelector("canvas"),
  select: element.querySelector("select"),
  about: element.querySelector(".about"),
  caption: element.querySelector(".caption"),
  legend: element.querySelector(".legend"),
  caution: element.querySelector(".caution"),
  thought: null,
}));

let info, maze, cursor = null, timer = null;
let wanted = 0, answered = 0, asking = false, strokeAt = 0;
const latencies = [];

// ---- Asking -----------------------------------------------------------------------------------

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("hvin play does not answer: is it still running?");
  }
  const isJson = answer.headers.get("Content-Type")?.startsWith("application/json");
  if (!answer.ok) throw new Error(isJson ? (await answer.json()).error : answer.statusText);
  return isJson ? answer.json() : answer.blob();
}

const shownPanels = () => panels.filter((panel) => !panel.element.hidden);
const names = () => shownPanels().map((panel) => panel.select.value);

function question() {
  const body = { page: PAGE, map: maze.rows(), start: maze.start, goal: maze.goal, planners: names() };
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

// The map has changed: draw it, and have it thought about. There is one question at a time; what
// changes meanwhile is asked afterwards, once.
function changed() {
  if (wanted === answered) strokeAt = performance.now();
  wanted += 1;
  fail(null);
  keepAddress();
  redraw();
  think();
}

async function think() {
  if (asking) return;
  asking = true;
  document.body.dataset.asking = "yes";
  while (answered !== wanted) {
    const number = wanted, since = strokeAt;
    const waiting = setTimeout(() => ($("latency").textContent = "thinking … (a new size is compiled once)"), 700);
    try {
      const answer = await ask("/api/think", question());
      if (!answer.overtaken) {
        show(answer.thoughts);
        told(performance.now() - since, 1000 * answer.seconds);
      }
    } catch (error) {
      fail(error);
    } finally {
      clearTimeout(waiting);
    }
    answered = number;
    strokeAt = performance.now();
  }
  asking = false;
  document.body.dataset.asking = "no";
}

function told(whole, server) {
  latencies.push(whole);
  document.body.dataset.latency = whole.toFixed(1);
  document.body.dataset.answers = latencies.length;
  $("latency").textContent =
    `${whole.toFixed(0)} ms from the stroke to the picture, ${server.toFixed(0)} ms of them to plan; nothing leaves this machine`;
}

function fail(error) {
  $("error").hidden = error === null;
  $("error").textContent = error === null ? "" : error.message;
}

// ---- Showing ----------------------------------------------------------------------------------

function show(thoughts) {
  const atEnd = Number($("moment").value) >= Number($("moment").max);
  shownPanels().forEach((panel, index) => {
    const sent = thoughts[index];
    if (!sent) return;
    panel.thought = new Thought(sent, info.planners.find((planner) => planner.name === sent.planner));
  });
  const most = Math.max(...shownPanels().map((panel) => panel.thought?.count ?? 1));
  $("moment").max = most - 1;
  if (atEnd && !timer) $("moment").value = most - 1;
  choices();
  redraw();
}

function choices() {
  const shown = shownPanels().filter((panel) => panel.thought);
  $("gateChoice").hidden = !shown.some((panel) => panel.thought.passed);
  const facing = shown.find((panel) => panel.thought.orientations > 1)?.thought.about.orientations ?? [];
  $("facingChoice").hidden = !facing.length;
  const key = facing.join();
  if ($("facing").dataset.key !== key) {
    $("facing").dataset.key = key;
    $("facing").replaceChildren(new Option("of most value", -1), ...facing.map((name, i) => new Option(name, i)));
  }
}

function view() {
  const share = Number($("moment").value) / Math.max(Number($("moment").max), 1);
  const colour = document.querySelector("input[name=colour]:checked").value;
  return {
    moment: (thought) => Math.round(share * (thought.count - 1)),
    colour: colour === "gate" && $("gateChoice").hidden ? "values" : colour,
    arrows: $("arrows").checked,
    best: $("best").checked,
    facing: Number($("facing").value || -1),
    cursor: document.activeElement?.tagName === "CANVAS" ? pointed() : null,
  };
}

let planned = false;
function redraw() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => {
    planned = false;
    if (!maze) return;
    const seen = view();
    for (const panel of shownPanels()) {
      const cell = draw(panel.canvas, maze, panel.thought, seen);
      tell(panel, seen);
      panel.legend.replaceChildren(...legend(panel.thought, seen, cell));
    }
    const depths = shownPanels().flatMap(({ thought }) => (thought ? thought.depths[seen.moment(thought)] : []));
    $("depth").value = depths.length ? `${depths.join(" | ")} layers` : "";
  });
}

function tell(panel, seen) {
  const thought = panel.thought;
  if (!thought) return;
  const moment = seen.moment(thought);
  panel.caption.textContent = thought.captions[moment];
  panel.caution.textContent = thought.caution ?? "";
  panel.caption.classList.toggle("bad", thought.shortest !== null && !thought.reached[moment]);
  panel.element.dataset.path = JSON.stringify(thought.paths[moment].map(([r, c]) => [r, c]));
  panel.element.dataset.moment = moment;
}

// ---- Drawing with mouse, finger and keys --------------------------------------------------------

let stroke = null;
const pointed = () => cursor ?? maze.start; // the cell that keys act on

function cellOf(canvas, event) {
  const box = canvas.getBoundingClientRect();
  const row = Math.floor(((event.clientY - box.top) / box.height) * maze.height);
  const column = Math.floor(((event.clientX - box.left) / box.width) * maze.width);
  return [row, column];
}

function begin(panel, event) {
  if (event.button > 0 || !maze) return;
  const [row, column] = cellOf(panel.canvas, event);
  if (!maze.inside(row, column)) return;
  end();
  panel.canvas.setPointerCapture(event.pointerId);
  cursor = [row, column];
  const what = ["start", "goal"].find((name) => maze.is(name, row, column));
  stroke = { what, wall: what ? null : maze.free[row][column], last: [row, column] };
  if (!what && maze.setWall(row, column, stroke.wall)) changed();
}

function go(panel, event) {
  if (!stroke) return;
  const [row, column] = cellOf(panel.canvas, event);
  let any = false;
  if (stroke.what) any = maze.move(stroke.what, row, column);
  else for (const [r, c] of between(stroke.last, [row, column])) any = maze.setWall(r, c, stroke.wall) || any;
  stroke.last = [row, column];
  if (any) changed();
}

function end() {
  if (stroke?.what) maze.drop(stroke.what);
  stroke = null;
  redraw();
}

// Cells on the way: a quick mouse skips some.
function between([r0, c0], [r1, c1]) {
  const steps = Math.max(Math.abs(r1 - r0), Math.abs(c1 - c0), 1);
  return Array.from({ length: steps + 1 }, (_, i) =>
    [Math.round(r0 + ((r1 - r0) * i) / steps), Math.round(c0 + ((c1 - c0) * i) / steps)]);
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !maze) return;
  const onMap = event.target.tagName === "CANVAS";
  if (onMap && STEPS[event.key]) {
    const [down, right] = STEPS[event.key];
    const [row, column] = pointed();
    if (maze.inside(row + down, column + right)) cursor = [row + down, column + right];
    redraw();
  } else if (onMap && event.key === " ") {
    const [row, column] = pointed();
    if (maze.setWall(row, column, maze.free[row][column])) changed();
  } else if (onMap && "sSgG".includes(event.key)) {
    const what = event.key.toLowerCase() === "s" ? "start" : "goal";
    cursor = pointed();
    if (maze.move(what, ...cursor)) changed();
    maze.drop(what);
  } else if (event.target.closest("select, textarea, input[type=text]")) {
    return;
  } else if (event.key === "," || event.key === ".") {
    stop();
    $("moment").value = Number($("moment").value) + (event.key === "." ? 1 : -1);
    redraw();
  } else if (event.key.toLowerCase() === "p") {
    play();
  } else return;
  event.preventDefault();
}

// ---- Time ---------------------------------------------------------------------------------------

function play() {
  if (timer) return stop();
  const slider = $("moment");
  if (Number(slider.value) >= Number(slider.max)) slider.value = 0;
  $("run").textContent = "❚❚";
  $("run").setAttribute("aria-label", "Pause");
  const each = Math.min(Math.max(6000 / (Number(slider.max) + 1), 60), 400);
  timer = setInterval(() => {
    slider.value = Number(slider.value) + 1;
    if (Number(slider.value) >= Number(slider.max)) stop();
    redraw();
  }, each);
  redraw();
}

function stop() {
  clearInterval(timer);
  timer = null;
  $("run").textContent = "▶";
  $("run").setAttribute("aria-label", "Play");
}

// ---- Maps, addresses, files -----------------------------------------------------------------------

function put(another) {
  maze = another;
  cursor = stroke = null;
  showSize();
  changed();
}

function open(answer) {
  put(new Maze(answer.map, answer.start, answer.goal));
  if (answer.note) fail(new Error(answer.note));
}

// The size box says how large the map is, be it a size to choose from or not.
function showSize() {
  const { height, width } = maze, other = $("otherSide");
  const text = height === width ? `${height}` : `${height}×${width}`;
  Object.assign(other, { text: "", value: "" });
  const listed = [...$("side").options].find((option) => option.text === text);
  if (!listed) Object.assign(other, { text, value: Math.max(height, width) });
  (listed ?? other).selected = true;
}

async function sample() {
  const words = new URLSearchParams({
    family: $("family").value,
    side: $("side").value,
    seed: Math.floor(1e9 * Math.random()),
  });
  await tried(async () => open(await ask(`/api/sample?${words}`)));
}

async function tried(what) {
  try {
    fail(null);
    await what();
  } catch (error) {
    fail(error);
  }
}

async function openFile(file) {
  await tried(async () => {
    const path = file.type === "image/png" || file.name.toLowerCase().endsWith(".png") ? "/api/png" : "/api/text";
    open(await ask(path, { method: "POST", body: file }));
  });
}

let keeping = null;
function keepAddress() {
  clearTimeout(keeping);
  keeping = setTimeout(() => history.replaceState(null, "", toAddress(maze, names())), 150);
}

const isKnown = (name) => info.planners.some((planner) => planner.name === name);

function choosePlanners(list) {
  const known = list.filter(isKnown).slice(0, 2);
  known.forEach((name, index) => (panels[index].select.value = name));
  setCompare(known.length > 1);
}

function setCompare(on) {
  panels[1].element.hidden = !on;
  $("compare").setAttribute("aria-pressed", on);
  for (const panel of panels) {
    const planner = info.planners.find((one) => one.name === panel.select.value);
    const deep = planner.kind.includes("dtvin") ? "as deep as the map needs" : `${planner.layers} layers`;
    panel.about.textContent = `${planner.kind.replaceAll("_", " ")}, ${deep}`;
  }
}

function fromHash() {
  const found = fromAddress(location.hash, info.sides);
  if (!found) return false;
  choosePlanners(found.planners.length ? found.planners : names());
  put(found.maze);
  const unknown = found.planners.find((name) => !isKnown(name));
  if (unknown) fail(new Error(`there is no planner '${unknown.slice(0, 40)}' here`));
  return true;
}

function savePng() {
  const maps = shownPanels().map(({ canvas, select, caption }) => ({ canvas, lines: [select.value, caption.textContent] }));
  pictureOf(maps).toBlob((blob) => save(blob, fileName(names(), "png")));
}

async function saveGif() {
  const button = $("gif");
  button.disabled = true;
  await tried(async () => save(await ask("/api/gif", question()), fileName(names().slice(0, 1), "gif")));
  button.disabled = false;
}

async function share() {
  history.replaceState(null, "", toAddress(maze, names()));
  await tried(async () => {
    await navigator.clipboard.writeText(location.href).catch(() => {
      throw new Error("the browser does not let this page copy: take the address from its line above");
    });
    $("share").textContent = "Copied";
    setTimeout(() => ($("share").textContent = "Copy address"), 1500);
  });
}

// ---- Beginning ------------------------------------------------------------------------------------

function fill() {
  const groups = new Map();
  for (const planner of info.planners) {
    if (!groups.has(planner.mechanism)) groups.set(planner.mechanism, []);
    groups.get(planner.mechanism).push(planner);
  }
  for (const panel of panels) {
    for (const [mechanism, members] of groups) {
      const group = document.createElement("optgroup");
      group.label = `moves: ${mechanism}`;
      group.append(...members.map((planner) => new Option(planner.name, planner.name)));
      panel.select.append(group);
    }
  }
  const other = info.planners.find((planner) => planner.gate && planner.name !== panels[0].select.value);
  panels[1].select.value = (other ?? info.planners[1] ?? info.planners[0]).name;
  $("family").append(...info.families.map((name) => new Option(name.replaceAll("_", " "), name)));
  $("family").value = "protocol";
  setCompare(false);
}

function listen() {
  for (const panel of panels) {
    panel.canvas.addEventListener("pointerdown", (event) => begin(panel, event));
    panel.canvas.addEventListener("pointermove", (event) => go(panel, event));
    for (const name of ["pointerup", "pointercancel"]) panel.canvas.addEventListener(name, end);
    for (const name of ["focus", "blur"]) panel.canvas.addEventListener(name, redraw);
    panel.select.addEventListener("change", () => (setCompare(!panels[1].element.hidden), changed()));
  }
  document.addEventListener("keydown", key);
  for (const id of ["moment", "arrows", "best", "facing"]) $(id).addEventListener("input", redraw);
  $("moment").addEventListener("pointerdown", stop);
  document.querySelectorAll("input[name=colour]").forEach((input) => input.addEventListener("input", redraw));
  $("run").addEventListener("click", play);
  $("sample").addEventListener("click", sample);
  $("family").addEventListener("change", sample);
  $("side").addEventListener("change", sample);
  $("clear").addEventListener("click", () => put(Maze.empty(maze.height, maze.width)));
  $("file").addEventListener("change", (event) => {
    if (event.target.files[0]) openFile(event.target.files[0]);
    event.target.value = "";
  });
  $("compare").addEventListener("click", () => { setCompare(panels[1].element.hidden); changed(); });
  $("share").addEventListener("click", share);
  $("png").addEventListener("click", savePng);
  $("gif").addEventListener("click", saveGif);
  $("theme").addEventListener("click", () => { theme.toggle(); redraw(); });
  addEventListener("resize", redraw);
  addEventListener("hashchange", () => tried(async () => fromHash()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

theme.recall();
await tried(async () => {
  info = await ask("/api/info");
  fill();
  listen();
  let loaded = false;
  await tried(async () => { loaded = fromHash(); });
  const problem = $("error").textContent;
  if (!loaded) await sample();
  if (problem) fail(new Error(problem));
  document.body.dataset.ready = "yes";
});
