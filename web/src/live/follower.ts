import { Thin } from "../model/fold";
import type { Lenient } from "../model/lenient";
import type { Summary, TickRecord } from "../model/records";
import type { StoredRun } from "../model/report";
import { runOf, type Run } from "../model/run";

export type Link = "connecting" | "following" | "lost" | "over";

/** Follows a run over server-sent events; what it knows is what anyone knows who joined at another time. */
export class Follower {
  link: Link = "connecting";
  #stored: Lenient<StoredRun> | null = null;
  #thin = new Thin();
  #source: EventSource | null = null;

  /** `changed` is told after each event. */
  constructor(private readonly changed: () => void) {}

  follow(address: string): void {
    const source = (this.#source = new EventSource(address));
    const on = (name: string, take: (data: string) => void) =>
      source.addEventListener(name, (event) => {
        take((event as MessageEvent<string>).data);
        this.changed();
      });
    on("run", (data) => this.begin(JSON.parse(data) as Lenient<StoredRun>));
    on("tick", (data) => this.#thin.add(JSON.parse(data) as Lenient<TickRecord>));
    on("summary", (data) => this.finish(JSON.parse(data) as Lenient<Summary>));
    on("end", () => this.close());
    // It connects again by itself, and is then told everything from the beginning.
    source.onerror = () => {
      if (this.link === "over") return;
      this.link = "lost";
      this.changed();
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.follow(address), RETRY_MS);
    };
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
    this.#source?.close();
  }

  /** None before the first event. */
  run(): Run | null {
    return this.#stored && runOf(this.#stored, this.#thin, this.link !== "over");
  }
}

/** A browser that gave up (the answer was no stream) is asked to try again after so long. */
const RETRY_MS = 2000;
