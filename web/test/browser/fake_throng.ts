import { readFileSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Thin } from "../../src/model/fold";
import type { Summary, TickRecord } from "../../src/model/records";
import type { StoredRun } from "../../src/model/report";

/** What a page asked for. */
export interface Asked {
  /** A command by its name, or what else the request has. */
  ask: unknown;
  header: string | undefined;
  type: string | undefined;
}

/** throng's dashboard as the page sees it: the page, the events, the controls. */
export class FakeThrong {
  readonly asked: Asked[] = [];
  /** What a control is answered, if not 204. */
  refusal: string | null = null;
  /** The run is not on the server's list any more. */
  isRemoved = false;
  #server: Server;
  #listeners = new Set<ServerResponse>();
  #ticks: TickRecord[] = [];
  #summary: Summary | null = null;
  connects = 0;

  constructor(private readonly run: StoredRun) {
    this.#server = createServer((request, answer) => {
      const { method, url } = request;
      if (url === "/") return void answer.setHeader("Content-Type", "text/html").end(readFileSync("dist/live.html"));
      if (url === "/events") return this.#listen(answer, this.isRemoved ? 404 : 200);
      if (method === "POST" && url === "/control") {
        let body = "";
        request.on("data", (part) => (body += part));
        request.on("end", () => {
          const { ask, ...rest } = JSON.parse(body) as { ask?: unknown };
          this.asked.push({ ask: ask ?? rest, header: request.headers["x-throng"] as string, type: request.headers["content-type"] });
          answer.statusCode = this.refusal ? 409 : 204;
          answer.end(this.refusal ?? undefined);
        });
        return;
      }
      answer.writeHead(404).end();
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((done) => this.#server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  stop(): void {
    this.drop();
    this.#server.close();
  }

  /** Ends all connections without a word. */
  drop(): void {
    this.#listeners.forEach((listener) => listener.destroy());
    this.#listeners.clear();
  }

  tick(record: TickRecord): void {
    this.#ticks.push(record);
    this.#tell("tick", record);
  }

  /** What came late of a tick, for those that follow; one that joins later does not have it. */
  late(record: TickRecord): void {
    this.#tell("late", record);
  }

  finish(summary: Summary): void {
    this.#summary = summary;
    this.#tell("summary", summary);
    this.#tell("end", {});
  }

  #listen(answer: ServerResponse, status: number): void {
    this.connects++;
    if (status !== 200) return void answer.writeHead(status).end();
    answer.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    answer.write("retry: 1000\n\n");
    this.#listeners.add(answer);
    const { ticks, width, count } = this.#thinned();
    answer.write(event("run", { ...this.run, ticks, width, count, summary: this.#summary }));
    if (this.#summary) answer.write(event("end", {}));
  }

  /** Merged as throng does it, but only what this test looks at. */
  #thinned(): { ticks: TickRecord[]; width: number; count: number } {
    const thin = new Thin();
    this.#ticks.forEach((tick) => thin.add(tick));
    if (thin.width !== 1) throw new Error("a test of no more than 600 ticks");
    return { ticks: this.#ticks, width: 1, count: this.#ticks.length };
  }

  #tell(name: string, data: object): void {
    this.#listeners.forEach((listener) => listener.write(event(name, data)));
  }
}

const event = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
