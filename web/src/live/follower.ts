import { Thin } from "../model/fold";
import type { Lenient } from "../model/lenient";
import type { Summary, TickRecord } from "../model/records";
import type { StoredRun } from "../model/report";
import { runOf, type Run } from "../model/run";
import { EventReader, type StreamEvent } from "./events";
import { shown } from "./token";

export type Link = "connecting" | "following" | "lost" | "refused" | "gone" | "over";

/** How a stream ends that throng does not end: only one that was lost is asked for again. */
type Ending = "lost" | "refused" | "gone";
/** By the status of a response without a stream: a run that was removed is never there again. */
const ENDINGS: Partial<Record<number, Ending>> = { 401: "refused", 404: "gone", 410: "gone" };

/** Follows a run over server-sent events; what it knows is what anyone knows who joined at another time. */
export class Follower {
  link: Link = "connecting";
  #stored: Lenient<StoredRun> | null = null;
  #thin = new Thin();
  #ending = new AbortController();

  /** `changed` is told after each event. */
  constructor(private readonly changed: () => void) {}

  follow(address: string): void {
    void this.#read(address).then((end) => {
      if (this.link === "over") return;
      this.link = end;
      this.changed();
      // It is told everything from the beginning then.
      if (end === "lost") setTimeout(() => this.follow(address), RETRY_MS);
    });
  }

  /** Until the stream ends, and how it did. By fetch: an EventSource shows no token but in a cookie or an address. */
  async #read(address: string): Promise<Ending> {
    if (this.link === "over") return "lost";
    try {
      const answer = await fetch(address, { headers: shown(), cache: "no-store", signal: this.#ending.signal });
      if (!answer.ok || !answer.body) return ENDINGS[answer.status] ?? "lost";
      const [pieces, events] = [answer.body.pipeThrough(new TextDecoderStream()).getReader(), new EventReader()];
      for (let piece = await pieces.read(); !piece.done; piece = await pieces.read()) {
        events.push(piece.value).forEach((event) => this.#take(event));
      }
    } catch {
      // As at a stream's end.
    }
    return "lost";
  }

  #take({ name, data }: StreamEvent): void {
    if (name === "run") this.begin(JSON.parse(data) as Lenient<StoredRun>);
    else if (name === "tick") this.#thin.add(JSON.parse(data) as Lenient<TickRecord>);
    else if (name === "late") this.#thin.amend(JSON.parse(data) as Lenient<TickRecord>);
    else if (name === "summary") this.finish(JSON.parse(data) as Lenient<Summary>);
    else if (name === "end") this.close();
    else return;
    this.changed();
  }

  begin(stored: Lenient<StoredRun>): void {
    this.#stored = stored;
    this.#thin = Thin.of(stored);
    this.link = "following";
  }

  finish(summary: Lenient<Summary>): void {
    this.#stored = { ...this.#stored, summary };
  }

  close(): void {
    this.link = "over";
    this.#ending.abort();
  }

  /** None before the first event. */
  run(): Run | null {
    return this.#stored && runOf(this.#stored, this.#thin, this.link !== "over");
  }
}

/** A stream that is lost is asked for again after so long. */
const RETRY_MS = 1000;
