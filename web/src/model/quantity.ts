/** How figures of one unit are written, exactly enough to read, and where an axis has its marks. */
export interface Quantity {
  text(value: number): string;
  /** Multiples of this are round numbers on an axis that reaches so far. */
  unit(most: number): number;
}

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** `1,000,000`. */
export const grouped = (n: number) => WHOLE.format(n);

/** Three significant digits at most, no trailing zeros. */
const short = (n: number) => (Math.abs(n) >= 100 ? String(Math.round(n)) : String(Number(n.toPrecision(3))));

function scaled(value: number, base: number, names: readonly string[]): string {
  let rest = Math.abs(value);
  let at = 0;
  // What would be rounded up to the next unit is written in that one.
  while (rest >= base - 0.5 && at < names.length - 1) {
    rest /= base;
    at++;
  }
  return `${value < 0 ? "−" : ""}${short(rest)}${names[at]}`;
}

/** `950`, `9,500`, `100k`, `1M`. */
export const count: Quantity = {
  text(n) {
    if (Math.abs(n) < 999.5) return short(n);
    return Math.abs(n) < 9_999.5 ? grouped(n) : scaled(n, 1e3, ["", "k", "M", "G"]);
  },
  unit: () => 1,
};

/** `1.5k/s`. */
export const rate: Quantity = { text: (n) => `${count.text(n)}/s`, unit: () => 1 };

/** Microseconds: `350 µs`, `1.2 ms`, `12 s`. */
export const time: Quantity = {
  text(us) {
    if (us >= 60e6) return span(us / 1e6);
    return us < 1 ? `${short(us * 1e3)} ns` : scaled(us, 1e3, [" µs", " ms", " s"]);
  },
  unit: () => 1,
};

/** Seconds: `1.5 s`, `1m30s`, `1h`. */
export function span(seconds: number): string {
  if (seconds < 60) return `${short(seconds)} s`;
  const whole = Math.round(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return parts.map((n, i) => (n > 0 ? `${n}${"hms"[i]}` : "")).join("");
}

const BINARY = [" B", " KiB", " MiB", " GiB", " TiB"];

/** `512 B`, `12.3 MiB`. */
export const bytes: Quantity = {
  text: (n) => scaled(n, 1024, BINARY),
  unit: (most) => 1024 ** Math.min(BINARY.length - 1, Math.floor(Math.log2(Math.max(1, most)) / 10)),
};

/** A number with its sign and so many decimal places: `+0.3`, `−1.2`; nothing is `0.0`, without a sign (`units::signed`). */
export function signed(n: number, places: number): string {
  const text = Math.abs(n).toFixed(places);
  return Number(text) === 0 ? text : `${n < 0 ? "−" : "+"}${text}`;
}

/** `10 %`, `3.1 %`, `0.05 %`: a share, to two digits at least; only nothing is 0 %, and only all is 100 %
 * (`units::percent`). */
export function percent(share: number): string {
  const value = share * 100;
  if (value < 0.01) return value > 0 ? "<0.01 %" : "0 %";
  if (value >= 99.95 && value < 100) return ">99.9 %";
  const isWhole = value >= 100 || (value >= 10 && value < 99.5);
  return `${value.toFixed(isWhole ? 0 : value >= 1 ? 1 : 2)} %`;
}

/** How much each unit of a text is, of times in microseconds. */
const UNITS: Record<string, number> = {
  ns: 1e-3, µs: 1, ms: 1e3, s: 1e6, m: 60e6, h: 3600e6, k: 1e3, M: 1e6, G: 1e9, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, "%": 1,
};
/** Parts of a number with its unit, one after another: `1m30s` has two. */
const PART = /(\d[\d,]*(?:\.\d+)?)(?: ?(ns|µs|ms|[KMGT]iB|[smhkMGB%])(?![a-z]))?/gy;

/** The number at the beginning of a text as this module writes them, to compare it with others of its unit; NaN where there is none. */
export function magnitude(text: string): number {
  const [, sign, rest] = text.match(/^[≥±<>]? ?([+−-]?)(.*)/)!;
  const parts = [...rest!.matchAll(PART)].map(([, digits, unit = ""]) => Number(digits!.replaceAll(",", "")) * (UNITS[unit] ?? 1));
  if (parts.length === 0) return NaN;
  return parts.reduce((sum, part) => sum + part, 0) * (sign && sign !== "+" ? -1 : 1);
}
