import type { Censored, Latency, Quantiles, Stalled } from "./records";
import type { Lenient } from "./lenient";

// The layout that throng's own histograms have (samples::Latency): steps of 64 ns, three significant digits.
const UNIT_BITS = 6;
const HALF_BITS = 10;
const HALF = 1 << HALF_BITS;
/** Places up to an hour, and some beyond. */
const PLACES = 28 * HALF;

/** How many times were recorded in each place that has any, places ascending. */
interface Recorded {
  places: Uint16Array;
  counts: Float64Array;
}

const NOTHING: Recorded = { places: new Uint16Array(0), counts: new Float64Array(0) };

/** In front of a figure that a share (0..=1) of the times decides, where more than the rest of them are lower bounds. */
export function atLeast(q: Lenient<Quantiles> | null | undefined, share: number): string {
  return (q?.stalled?.share ?? 0) > (1 - share) * (1 + 1e-12) ? "≥ " : "";
}

/** The distribution of one time, nanoseconds; what `samples::Latency` is, with the same figures. */
export class Distribution {
  /** Decoded, or added up, at the first use: most are never looked at. */
  #source: (() => Recorded) | null;
  #recorded: Recorded = NOTHING;
  #count = -1;

  private constructor(
    source: () => Recorded,
    /** All together, nanoseconds. */
    readonly sum: number,
    readonly min: number,
    readonly max: number,
    /** How many have no time: requests without a response, dials without a connection. */
    readonly censored: number,
    /** How many are lower bounds, since throng itself stood still, and the most that was taken off one of them, nanoseconds. */
    readonly stalled: number,
    readonly takenOff: number,
  ) {
    this.#source = source;
  }

  static readonly EMPTY = new Distribution(() => NOTHING, 0, Infinity, 0, 0, 0, 0);

  static of(latency: Lenient<Latency> | null | undefined): Distribution {
    const text = latency?.histogram;
    const censored = latency?.censored ?? 0;
    if (!text) return censored > 0 ? new Distribution(() => NOTHING, 0, Infinity, 0, censored, 0, 0) : Distribution.EMPTY;
    const [stalled, takenOff] = [latency.stalled ?? 0, latency.taken_off ?? 0];
    const [sum, min, max] = [latency.sum ?? 0, latency.min ?? Infinity, latency.max ?? 0];
    return new Distribution(() => decode(text), sum, min, max, censored, stalled, takenOff);
  }

  /** Everything that was recorded in any of them. */
  static merged(all: readonly Distribution[]): Distribution {
    const some = all.filter((one) => one !== Distribution.EMPTY);
    if (some.length === 0) return Distribution.EMPTY;
    if (some.length === 1) return some[0]!;
    return new Distribution(
      () => added(some.map((one) => one.#read())),
      some.reduce((sum, one) => sum + one.sum, 0),
      some.reduce((min, one) => Math.min(min, one.min), Infinity),
      some.reduce((max, one) => Math.max(max, one.max), 0),
      some.reduce((sum, one) => sum + one.censored, 0),
      some.reduce((sum, one) => sum + one.stalled, 0),
      some.reduce((most, one) => Math.max(most, one.takenOff), 0),
    );
  }

  /** Decodes now, so that nothing that it was made of is kept. */
  settle(): void {
    this.#read();
  }

  #read(): Recorded {
    if (this.#source) {
      this.#recorded = this.#source();
      this.#source = null;
    }
    return this.#recorded;
  }

  get count(): number {
    if (this.#count < 0) {
      this.#count = 0;
      for (const n of this.#read().counts) this.#count += n;
    }
    return this.#count;
  }

  /** The time that a share `q` (0..=1) of all did not exceed, nanoseconds; zero without any. */
  quantile(q: number): number {
    const { places, counts } = this.#read();
    const wanted = Math.max(1, Math.ceil(Math.min(q, 1) * this.count));
    let seen = 0;
    for (let i = 0; i < places.length; i++) {
      seen += counts[i]!;
      if (seen >= wanted) return Math.min(highest(places[i]!), this.max);
    }
    return 0;
  }

  /** The share (0..=1) of all that has no time; zero of none. */
  get censoredShare(): number {
    return this.censored / Math.max(this.censored + this.count, 1);
  }

  /**
   * The time that a share `q` (0..=1) of all did not exceed, where those without a time are longer than every other; none
   * where it lies among those, or of nothing. Nanoseconds.
   */
  judgedQuantile(q: number): number | null {
    // The product may be off in its last digits: 0.99 of 1,000 is the 990th.
    const rank = Math.max(1, Math.ceil(q * (this.count + this.censored) * (1 - 1e-12)));
    return rank <= this.count ? this.quantile((rank - 0.5) / this.count) : null;
  }

  #judged(): Censored | null {
    if (this.censored === 0) return null;
    const us = (q: number) => {
      const ns = this.judgedQuantile(q);
      return ns === null ? null : ns / 1e3;
    };
    return {
      count: this.censored, share: this.censoredShare,
      p50: us(0.5), p75: us(0.75), p90: us(0.9), p95: us(0.95), p99: us(0.99), p999: us(0.999), p9999: us(0.9999),
    };
  }

  #stalled(): Stalled | null {
    const [count, most] = [this.stalled, this.takenOff / 1e3];
    return count === 0 ? null : { count, share: count / this.count, most };
  }

  /** Its figures, microseconds. */
  quantiles(): Quantiles {
    const none = this.count === 0;
    const us = (q: number) => this.quantile(q) / 1e3;
    return {
      count: this.count,
      mean: this.sum / 1e3 / Math.max(this.count, 1),
      stdev: this.#stdev() / 1e3,
      min: none ? 0 : this.min / 1e3,
      p50: us(0.5),
      p75: us(0.75),
      p90: us(0.9),
      p95: us(0.95),
      p99: us(0.99),
      p999: us(0.999),
      p9999: us(0.9999),
      max: this.max / 1e3,
      censored: this.#judged(),
      stalled: this.#stalled(),
    };
  }

  /** How many lie in each place: its lowest time, nanoseconds, and the number. */
  *places(): Generator<[number, number]> {
    const { places, counts } = this.#read();
    for (let i = 0; i < places.length; i++) yield [lowest(places[i]!), counts[i]!];
  }

  #stdev(): number {
    const { places, counts } = this.#read();
    if (places.length === 0) return 0;
    let mean = 0;
    places.forEach((place, i) => (mean += (middle(place) * counts[i]!) / this.count));
    let squares = 0;
    places.forEach((place, i) => (squares += (middle(place) - mean) ** 2 * counts[i]!));
    return Math.sqrt(squares / this.count);
  }
}

/** Of a place: how often its step was doubled. */
const doublings = (place: number) => Math.max(0, (place >> HALF_BITS) - 1);
const step = (place: number) => 2 ** (UNIT_BITS + doublings(place));
const lowest = (place: number) => (place < 2 * HALF ? place : HALF + (place & (HALF - 1))) * step(place);
const highest = (place: number) => lowest(place) + step(place) - 1;
const middle = (place: number) => lowest(place) + step(place) / 2;

function placeOf(value: number): number {
  let doubled = 0;
  while (value >= 2 ** (UNIT_BITS + HALF_BITS + 1 + doubled)) doubled++;
  return doubled * HALF + Math.floor(value / 2 ** (UNIT_BITS + doubled));
}

/** Takes places in ascending order, some of them several times. One for all: nothing is decoded at the same time. */
const taken = {
  places: new Uint16Array(PLACES),
  counts: new Float64Array(PLACES),
  length: 0,

  take(place: number, count: number): void {
    if (this.length > 0 && this.places[this.length - 1] === place) {
      this.counts[this.length - 1]! += count;
    } else {
      this.places[this.length] = place;
      this.counts[this.length++] = count;
    }
  },

  finish(): Recorded {
    const recorded = { places: this.places.slice(0, this.length), counts: this.counts.slice(0, this.length) };
    this.length = 0;
    return recorded;
  },
};

/** By place, all zero but while something is added up in it. */
const sums = new Float64Array(PLACES);

function added(all: Recorded[]): Recorded {
  let [least, beyond] = [PLACES, 0];
  for (const { places, counts } of all) {
    if (places.length === 0) continue;
    least = Math.min(least, places[0]!);
    beyond = Math.max(beyond, places[places.length - 1]! + 1);
    for (let i = 0; i < places.length; i++) sums[places[i]!]! += counts[i]!;
  }
  for (let place = least; place < beyond; place++) if (sums[place]! > 0) taken.take(place, sums[place]!);
  sums.fill(0, least, Math.max(least, beyond));
  return taken.finish();
}

const COOKIE_V2 = 0x1c849303;
const HEAD_BYTES = 40;

/**
 * Reads HdrHistogram's format V2, not compressed: a head, then zig-zag LEB128 numbers (up to 9 bytes), of which a negative
 * one is so many empty places. One of another precision than ours is taken over place by place, as Rust does it.
 */
function decode(base64: string): Recorded {
  const bytes = bytesOf(base64);
  const head = new DataView(bytes.buffer);
  // The cookie's second-lowest half byte may tell a word size; it says nothing here.
  if (bytes.length < HEAD_BYTES || (head.getUint32(0) & ~0xf0) !== (COOKIE_V2 & ~0xf0)) return NOTHING;
  const lowestTold = head.getUint32(16) * 2 ** 32 + head.getUint32(20);
  const place = placer(head.getUint32(12), lowestTold);
  const end = Math.min(bytes.length, HEAD_BYTES + head.getUint32(4));
  for (let at = HEAD_BYTES, index = 0; at < end; ) {
    let value = 0;
    for (let scale = 1, n = 1; ; scale *= 128, n++) {
      const byte = bytes[at++] ?? 0;
      // All eight bits of a ninth byte count.
      value += (n === 9 ? byte : byte & 0x7f) * scale;
      if (n === 9 || byte < 0x80) break;
    }
    if (value % 2 === 1) {
      index += (value + 1) / 2;
    } else {
      if (value > 0) taken.take(place(index), value / 2);
      index++;
    }
  }
  return taken.finish();
}

function bytesOf(base64: string): Uint8Array {
  const letters = atob(base64);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/** From an index of a histogram with so many digits to the place of the same time in ours. */
function placer(digits: number, lowestTold: number): (index: number) => number {
  const unitBits = Math.floor(Math.log2(Math.max(1, lowestTold)));
  const halfBits = Math.ceil(Math.log2(2 * 10 ** digits)) - 1;
  if (unitBits === UNIT_BITS && halfBits === HALF_BITS) return (index) => Math.min(index, PLACES - 1);
  const half = 2 ** halfBits;
  return (index) => {
    const doubled = Math.max(0, Math.floor(index / half) - 1);
    return Math.min(placeOf((index - doubled * half) * 2 ** (unitBits + doubled)), PLACES - 1);
  };
}
