// Files for people to keep: their names, and maps with their captions as one image.

const GAP = 16, LINE = 22; // pixels of the page

export function fileName(planners, kind) {
  const words = planners.map((name) => name.replace(/\/+$/, "").split("/").pop().replace(/[^\w.-]+/g, "-"));
  return `${["thought", ...words].join("-")}.${kind}`;
}

export function save(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Maps side by side, each over lines of text.
export function pictureOf(maps) {
  const ratio = window.devicePixelRatio || 1, gap = GAP * ratio, line = LINE * ratio;
  const style = getComputedStyle(document.documentElement);
  const all = document.createElement("canvas"), pen = all.getContext("2d");
  const font = `${15 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
  pen.font = font;
  const widths = maps.map(({ canvas, lines }) =>
    Math.ceil(Math.max(canvas.width, ...lines.map((text) => pen.measureText(text).width))));
  const tallest = Math.max(...maps.map(({ canvas }) => canvas.height));
  all.width = widths.reduce((sum, width) => sum + width + gap, gap);
  all.height = tallest + Math.max(...maps.map(({ lines }) => lines.length)) * line + 2 * gap;
  pen.fillStyle = style.getPropertyValue("--card");
  pen.fillRect(0, 0, all.width, all.height);
  pen.fillStyle = style.getPropertyValue("--ink");
  pen.font = font;
  let left = gap;
  maps.forEach(({ canvas, lines }, index) => {
    pen.drawImage(canvas, left, gap);
    lines.forEach((text, i) => pen.fillText(text, left, gap + tallest + (i + 1) * line));
    left += widths[index] + gap;
  });
  return all;
}
