// Stacked bars, one a minute, as SVG in the width that there is, so that its letters keep their size.

import { draw } from "./dom.js";
import { clock, count } from "./time.js";

const HEIGHT = 190;
const LEFT = 40;
const BOTTOM = 22;
const TOP = 10;
/** What has happened is to be seen, however little it is beside the rest. */
const LEAST = 2;

/** A chart of these minutes; `series` are pairs of a field and its word, drawn from the ground up. */
export function bars(minutes, series, available, description) {
  const width = Math.max(260, available);
  const total = (minute) => series.reduce((sum, [name]) => sum + minute[name], 0);
  const top = niceTop(Math.max(...minutes.map(total)));
  const scale = (HEIGHT - TOP - BOTTOM) / top;
  const step = (width - LEFT) / minutes.length;
  const columns = minutes.map((minute, at) => column(minute, series, LEFT + at * step, step, scale));
  return draw(
    "svg",
    { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", focusable: "false", "aria-label": description },
    grid(top, scale, width),
    columns,
    axis(minutes, step, width),
  );
}

function column(minute, series, x, step, scale) {
  let ground = HEIGHT - BOTTOM;
  const parts = [];
  const words = [];
  for (const [name, word] of series) {
    if (minute[name] === 0) continue;
    const height = Math.max(LEAST, minute[name] * scale);
    ground -= height;
    words.push(`${count(minute[name])} ${word}`);
    parts.push(draw("rect", { class: name, x: x + step * 0.1, y: ground, width: step * 0.8, height }));
  }
  if (parts.length === 0) return null;
  return draw("g", {}, draw("title", {}, `${clock(minute.at)}: ${words.join(", ")}`), parts);
}

function grid(top, scale, width) {
  const middle = top > 1 ? [top / 2] : [];
  return [0, ...middle, top].map((value) => {
    const y = HEIGHT - BOTTOM - value * scale;
    return draw(
      "g",
      { "aria-hidden": "true" },
      draw("line", { class: "grid", x1: LEFT, x2: width, y1: y, y2: y }),
      draw("text", { class: "label", x: LEFT - 6, y: y + 4, "text-anchor": "end" }, short(value)),
    );
  });
}

function axis(minutes, step, width) {
  const every = width < 480 ? 20 : 10;
  const labels = minutes.map((minute, at) => {
    const ofHour = Math.round(minute.at / 60_000) % 60;
    const x = LEFT + (at + 0.5) * step;
    if (ofHour % every !== 0 || x < LEFT + 16 || x > width - 18) return null;
    return draw("text", { class: "label", x, y: HEIGHT - 5, "text-anchor": "middle" }, clock(minute.at));
  });
  return draw("g", { "aria-hidden": "true" }, labels);
}

/** The next round number: 1, 2, 4, 6 or 10 times a power of ten. */
function niceTop(most) {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, most))));
  const factor = [1, 2, 4, 6, 10].find((factor) => factor * power >= most) ?? 10;
  return factor * power;
}

function short(number) {
  return number >= 10_000 ? `${count(number / 1000)}k` : count(number);
}
