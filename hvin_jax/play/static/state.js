// What there is to plan for: the map, start and goal; and how an address carries all of it.

export class Maze {
  constructor(rows, start, goal) {
    this.height = rows.length;
    this.width = rows[0].length;
    this.free = rows.map((row) => [...row].map((c) => c === "."));
    this.start = [...start];
    this.goal = [...goal];
  }

  // With walls around it, if that leaves room to go anywhere.
  static empty(height, width) {
    const edge = Math.min(height, width) > 3 ? 1 : 0;
    const within = (n, most) => n >= edge && n < most - edge;
    const rows = Array.from({ length: height }, (_, r) =>
      Array.from({ length: width }, (_, c) => (within(r, height) && within(c, width) ? "." : "#")).join(""));
    return new Maze(rows, [edge, edge], [height - 1 - edge, width - 1 - edge]);
  }

  // Start and goal count as free even on a wall, over which they may be dragged.
  isFree(row, column) {
    return this.free[row][column] || this.is("start", row, column) || this.is("goal", row, column);
  }

  rows() {
    return this.free.map((row, r) => row.map((_, c) => (this.isFree(r, c) ? "." : "#")).join(""));
  }

  inside(row, column) {
    return row >= 0 && column >= 0 && row < this.height && column < this.width;
  }

  is(what, row, column) {
    return this[what][0] === row && this[what][1] === column;
  }

  // Whether anything has changed.
  setWall(row, column, wall) {
    if (!this.inside(row, column) || this.free[row][column] === !wall) return false;
    if (wall && (this.is("start", row, column) || this.is("goal", row, column))) return false;
    this.free[row][column] = !wall;
    return true;
  }

  // Start or goal to a cell, which it leaves as it was unless dropped there; whether anything has changed.
  move(what, row, column) {
    if (!this.inside(row, column) || this.is(what, row, column)) return false;
    this[what] = [row, column];
    return true;
  }

  // Start or goal stays where it is, which becomes free.
  drop(what) {
    const [row, column] = this[what];
    this.free[row][column] = true;
  }
}

// Cells as bits, eight in a byte, in base64 that addresses like.
function packed(maze) {
  const bytes = new Uint8Array(Math.ceil((maze.height * maze.width) / 8));
  [...maze.rows().join("")].forEach((c, i) => { if (c === ".") bytes[i >> 3] |= 1 << (i & 7); });
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function unpacked(text, height, width) {
  const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  if (bytes.length !== Math.ceil((height * width) / 8)) throw new Error("cells");
  const cell = (i) => ((bytes.charCodeAt(i >> 3) >> (i & 7)) & 1 ? "." : "#");
  return Array.from({ length: height }, (_, r) =>
    Array.from({ length: width }, (_, c) => cell(r * width + c)).join(""));
}

export function toAddress(maze, planners) {
  const words = new URLSearchParams({
    size: `${maze.height}x${maze.width}`,
    map: packed(maze),
    start: maze.start.join("."),
    goal: maze.goal.join("."),
    planners: planners.join(","),
  });
  return `#${words}`;
}

// The map and the planners of an address; null if it carries none. An error if it is damaged.
export function fromAddress(hash, sides) {
  if (hash.length < 2) return null;
  try {
    const words = new URLSearchParams(hash.slice(1));
    const [height, width] = words.get("size").split("x").map(Number);
    const ok = (n) => Number.isInteger(n) && n >= sides[0] && n <= sides[1];
    if (!ok(height) || !ok(width)) throw new Error("size");
    const [start, goal] = ["start", "goal"].map((name) => words.get(name).split(".").map(Number));
    const maze = new Maze(unpacked(words.get("map"), height, width), start, goal);
    for (const [row, column] of [start, goal]) {
      if (!maze.inside(row, column) || !maze.free[row][column]) throw new Error("ends");
    }
    return { maze, planners: (words.get("planners") ?? "").split(",").filter(Boolean) };
  } catch {
    throw new Error("the address does not carry a whole map: it was cut or changed");
  }
}
