import type { Chart } from "../model/chart";
import { colourOf, dash, isLeftOut, symbolOutline } from "./drawing";

const HEAD = 50;
const ROW = 16;
/** About the width of a letter of the small size. */
const LETTER = 6.2;
const PADDING = 16;
const SVG = "http://www.w3.org/2000/svg";
/** Pixels of the PNG for each of the chart: sharp on any screen and in print. */
const SCALE = 2;

export function saveSvg(chart: Chart, svg: SVGSVGElement): void {
  download(`${chart.id}.svg`, new Blob([alone(chart, svg)], { type: "image/svg+xml" }));
}

export function savePng(chart: Chart, svg: SVGSVGElement): void {
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width * SCALE, image.height * SCALE];
    const pen = canvas.getContext("2d")!;
    pen.scale(SCALE, SCALE);
    pen.drawImage(image, 0, 0);
    canvas.toBlob((blob) => blob && download(`${chart.id}.png`, blob), "image/png");
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(alone(chart, svg))}`;
}

function download(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // Not at once: the browser has to have begun reading it.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The chart as a document of its own: with title and legend, and colours that need no style sheet. */
export function alone(chart: Chart, svg: SVGSVGElement): string {
  const [width, height] = [svg.width.baseVal.value, svg.height.baseVal.value];
  const names = legend(chart, width);
  const top = HEAD + names.rows * ROW;
  const wide = Math.max(width, chart.says.length * LETTER);
  const whole = element("svg", { xmlns: SVG, width: wide + 2 * PADDING, height: top + height + PADDING });
  whole.setAttribute("font-family", "system-ui, sans-serif");
  whole.append(element("rect", { width: "100%", height: "100%", fill: "var(--surface)" }));
  whole.append(text(PADDING, 24, chart.title, { "font-size": 15, "font-weight": 600, fill: "var(--text)" }));
  whole.append(text(PADDING, 41, chart.says, { "font-size": 11, fill: "var(--faint)" }), ...names.elements);
  const copy = svg.cloneNode(true) as SVGSVGElement;
  copy.setAttribute("x", String(PADDING));
  copy.setAttribute("y", String(top));
  copy.setAttribute("color", "var(--text)");
  whole.append(copy);
  const sheet = getComputedStyle(document.documentElement);
  const resolve = (source: string) => source.replace(/var\((--[\w-]+)\)/g, (_, name: string) => sheet.getPropertyValue(name).trim());
  return resolve(new XMLSerializer().serializeToString(whole));
}

/** Names of lines behind samples of them, in as many rows as it takes. */
function legend(chart: Chart, width: number): { elements: SVGElement[]; rows: number } {
  let [x, row] = [PADDING, 0];
  const hidden = new Set(chart.lines.filter(({ off }) => off).map(({ name }) => name));
  const elements = chart.lines.flatMap((line, place) => {
    if (line.off || isLeftOut(chart, line, hidden)) return [];
    const long = 27 + line.name.length * LETTER + 14;
    if (x > PADDING && x + long > width + PADDING) [x, row] = [PADDING, row + 1];
    const [from, y] = [x, HEAD + row * ROW + 8];
    x += long;
    const stroke = colourOf(line, place);
    const dashes = line.limit ? "3 3" : (dash(place) ?? "");
    const sample = line.dots
      ? element("path", { d: symbolOutline(place), transform: `translate(${from + 11} ${y})`, stroke, fill: "none", "stroke-width": 1.5 })
      : element("line", { x1: from, x2: from + 22, y1: y, y2: y, stroke, "stroke-width": 2, "stroke-dasharray": dashes });
    return [sample, text(from + 27, y + 4, line.name, { "font-size": 11, fill: "var(--text)" })];
  });
  return { elements, rows: elements.length > 0 ? row + 1 : 0 };
}

function text(x: number, y: number, words: string, attributes: Record<string, string | number>): SVGElement {
  const written = element("text", { x, y, ...attributes });
  written.textContent = words;
  return written;
}

function element(name: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}
