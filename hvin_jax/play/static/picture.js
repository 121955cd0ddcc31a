// A map on a canvas: colours of cells, arrows, paths, start and goal.

const VALUES = ["#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c", "#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725"];
const SHARES = ["#000004", "#140e36", "#3b0f70", "#641a80", "#8c2981", "#b73779", "#de4968", "#f7705c", "#fe9f6d", "#fecf92", "#fcfdbf"];
const PATH = ["#b5367a", "#d6456c", "#ef6f5b", "#fb9b4f", "#fdc93f", "#fcf05a"];
const ACTIONS = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f"];
const COMPASS = { N: [-1, 0], E: [0, 1], W: [0, -1], S: [1, 0], NE: [-1, 1], NW: [-1, -1], SE: [1, 1], SW: [1, -1] };
const SMALLEST_ARROW = 13; // cells of fewer pixels have colours in place of arrows
const SMALLEST_MARK = 18; // pixels of start and goal, however small cells are

function table(colours) {
  const parts = colours.map((c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)));
  return Array.from({ length: 256 }, (_, k) => {
    const at = (k / 255) * (parts.length - 1), low = Math.min(Math.floor(at), parts.length - 2), share = at - low;
    const mixed = parts[low].map((x, i) => Math.round(x + share * (parts[low + 1][i] - x)));
    return `rgb(${mixed})`;
  });
}
const COLOURS = { values: table(VALUES), gate: table(SHARES), path: table(PATH) };

function bytes(text) {
  return text === null ? null : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

// A thought as the server sends it, with its arrays unpacked and ways to look them up.
export class Thought {
  constructor(sent, planner) {
    Object.assign(this, sent);
    this.about = planner;
    for (const name of ["values", "policies", "passed"]) this[name] = bytes(sent[name]);
    [this.count, this.height, this.width, this.orientations] = sent.shape;
  }

  at(array, moment, row, column, orientation) {
    return array[((moment * this.height + row) * this.width + column) * this.orientations + orientation];
  }

  // The orientation that is shown of a cell: the one that is asked for, or that of most value.
  shown(moment, row, column, facing) {
    if (facing >= 0 && facing < this.orientations) return facing;
    let best = 0;
    if (this.values) {
      for (let o = 1; o < this.orientations; o++) {
        if (this.at(this.values, moment, row, column, o) > this.at(this.values, moment, row, column, best)) best = o;
      }
    }
    return best;
  }
}

// Pixels that a map may be high: what the window shows at once.
const tallest = () => Math.max(0.9 * window.innerHeight, 240);

// Draws a map as large as there is room for; returns how many pixels a cell has.
export function draw(canvas, maze, thought, view) {
  const ratio = window.devicePixelRatio || 1;
  const cell = Math.min(canvas.parentElement.clientWidth / maze.width, tallest() / maze.height);
  const size = [maze.width, maze.height].map((n) => Math.round(n * cell * ratio));
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  Object.assign(canvas.style, { width: `${cell * maze.width}px`, height: `${cell * maze.height}px` });
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio * cell, 0, 0, ratio * cell, 0, 0);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const current = thought && thought.height === maze.height && thought.width === maze.width ? thought : null;
  const moment = current ? Math.min(view.moment(current), current.count - 1) : 0;
  cells(pen, maze, current, moment, view, colour, cell);
  if (current && view.arrows) arrows(pen, maze, current, moment, view, cell);
  if (current) {
    path(pen, current.paths[moment], cell);
    if (view.best && current.best) thin(pen, current.best, cell);
  }
  const at = (name, fallback) => (current && maze[name].join() === fallback?.slice(0, 2).join() ? fallback : maze[name]);
  const facing = (state) => (current && state.length > 2 ? COMPASS[current.about.orientations[state[2]]] : null);
  const start = at("start", current?.start), goal = at("goal", current?.goals[0]);
  const large = Math.min(Math.max(1, SMALLEST_MARK / cell), maze.height, maze.width);
  const within = (n, most) => Math.min(Math.max(n + 0.5, large / 2), most - large / 2); // none is cut off
  const place = ([row, column]) => [within(row, maze.height), within(column, maze.width)];
  mark(pen, place(goal), large, colour("goal"), facing(goal), star);
  mark(pen, place(start), large, colour("start"), facing(start), disc);
  if (view.cursor) {
    pen.strokeStyle = colour("accent");
    pen.lineWidth = 0.12;
    pen.strokeRect(view.cursor[1] + 0.06, view.cursor[0] + 0.06, 0.88, 0.88);
  }
  return cell;
}

// What colours of actions mean, where cells have these.
export function legend(thought, view, cell) {
  if (!thought || !view.arrows || cell >= SMALLEST_ARROW || colouring(thought, view)) return [];
  return thought.about.actions.map((name, action) => {
    const entry = Object.assign(document.createElement("span"), { textContent: name });
    entry.style.borderColor = ACTIONS[action % ACTIONS.length];
    return entry;
  });
}

function cells(pen, maze, thought, moment, view, colour, cell) {
  const wall = colour("wall"), free = colour("free");
  pen.fillStyle = wall;
  pen.fillRect(0, 0, maze.width, maze.height);
  const array = colouring(thought, view);
  const over = 0.6 / cell; // so that no seams show between cells
  for (let row = 0; row < maze.height; row++) {
    for (let column = 0; column < maze.width; column++) {
      if (!maze.isFree(row, column)) continue;
      pen.fillStyle = free;
      if (array) {
        const o = thought.shown(moment, row, column, view.facing);
        pen.fillStyle = COLOURS[view.colour][thought.at(array, moment, row, column, o)];
      }
      pen.fillRect(column, row, 1 + over, 1 + over);
    }
  }
  pen.fillStyle = wall;
  for (let row = 0; row < maze.height; row++) {
    for (let column = 0; column < maze.width; column++) {
      if (!maze.isFree(row, column)) pen.fillRect(column, row, 1, 1);
    }
  }
}

// What cells are coloured by; nothing if the planner has no such thing.
function colouring(thought, view) {
  return thought && { values: thought.values, gate: thought.passed }[view.colour];
}

function arrows(pen, maze, thought, moment, view, cell) {
  const { moves, orientations } = thought.about, plain = !colouring(thought, view);
  for (let row = 0; row < maze.height; row++) {
    for (let column = 0; column < maze.width; column++) {
      if (!maze.isFree(row, column)) continue;
      const o = thought.shown(moment, row, column, view.facing);
      const action = thought.at(thought.policies, moment, row, column, o);
      const [down, right, turned] = moves[o][action];
      if (cell < SMALLEST_ARROW) {
        if (!plain) continue; // two colours in a cell would be none
        pen.fillStyle = ACTIONS[action % ACTIONS.length];
        pen.fillRect(column, row, 1, 1);
        continue;
      }
      const faced = COMPASS[orientations[o]] ?? [-1, 0];
      const towards = down || right ? [down, right] : faced;
      const after = COMPASS[orientations[turned]] ?? faced;
      const clockwise = faced[1] * after[0] > faced[0] * after[1];
      pen.save();
      pen.translate(column + 0.5, row + 0.5);
      pen.rotate(Math.atan2(towards[1], -towards[0]));
      for (const [width, tint] of plain ? [[0, "#8a94a0"]] : [[0.08, "rgba(20,25,30,0.6)"], [0, "#ffffff"]]) {
        pen.strokeStyle = pen.fillStyle = tint;
        if (down || right) straight(pen, width); else bent(pen, clockwise ? 1 : -1, width);
      }
      pen.restore();
    }
  }
}

// Arrows, so much wider than the thinnest.
function straight(pen, wider) {
  pen.lineWidth = 0.07 + wider;
  pen.beginPath();
  pen.moveTo(0, 0.28);
  pen.lineTo(0, -0.1);
  pen.stroke();
  pen.beginPath();
  pen.moveTo(0, -0.32);
  pen.lineTo(0.17, -0.04);
  pen.lineTo(-0.17, -0.04);
  head(pen, wider);
}

function bent(pen, side, wider) {
  pen.lineWidth = 0.07 + wider;
  pen.beginPath();
  pen.moveTo(-0.12 * side, 0.24);
  pen.quadraticCurveTo(-0.12 * side, -0.08, 0.06 * side, -0.08);
  pen.stroke();
  pen.beginPath();
  pen.moveTo(0.27 * side, -0.08);
  pen.lineTo(0.04 * side, -0.22);
  pen.lineTo(0.04 * side, 0.06);
  head(pen, wider);
}

function head(pen, wider) {
  pen.closePath();
  pen.fill();
  if (!wider) return;
  pen.lineWidth = wider;
  pen.stroke();
}

function path(pen, states, cell) {
  pen.lineCap = "round";
  pen.lineWidth = Math.max(0.3, 4.5 / cell);
  const last = Math.max(states.length - 2, 1);
  for (let i = 0; i + 1 < states.length; i++) {
    const [r0, c0] = states[i], [r1, c1] = states[i + 1];
    if (r0 === r1 && c0 === c1) continue;
    pen.strokeStyle = COLOURS.path[Math.round((255 * i) / last) & 255] ?? COLOURS.path[255];
    pen.beginPath();
    pen.moveTo(c0 + 0.5, r0 + 0.5);
    pen.lineTo(c1 + 0.5, r1 + 0.5);
    pen.stroke();
  }
}

function thin(pen, states, cell) {
  pen.lineCap = pen.lineJoin = "round";
  const inner = Math.max(0.08, 1.5 / cell);
  for (const [width, colour] of [[inner + 1.5 / cell, "rgba(20,25,30,0.6)"], [inner, "#ffffff"]]) {
    pen.lineWidth = width;
    pen.strokeStyle = colour;
    pen.beginPath();
    states.forEach(([r, c], i) => (i ? pen.lineTo(c + 0.5, r + 0.5) : pen.moveTo(c + 0.5, r + 0.5)));
    pen.stroke();
  }
}

function mark(pen, [down, right], large, colour, towards, otherwise) {
  pen.save();
  pen.translate(right, down);
  pen.scale(large, large);
  pen.fillStyle = colour;
  pen.strokeStyle = "#ffffff";
  pen.lineWidth = 0.09;
  pen.lineJoin = "round";
  pen.beginPath();
  if (towards) {
    pen.rotate(Math.atan2(towards[1], -towards[0]));
    [[0, -0.46], [0.37, 0.37], [0, 0.18], [-0.37, 0.37]].forEach(([x, y]) => pen.lineTo(x, y));
    pen.closePath();
  } else otherwise(pen);
  pen.stroke();
  pen.fill();
  pen.restore();
}

function disc(pen) {
  pen.arc(0, 0, 0.36, 0, 2 * Math.PI);
}

function star(pen) {
  for (let i = 0; i < 10; i++) {
    const radius = i % 2 ? 0.2 : 0.48, angle = -Math.PI / 2 + (i * Math.PI) / 5;
    pen.lineTo(radius * Math.cos(angle), radius * Math.sin(angle));
  }
  pen.closePath();
}
