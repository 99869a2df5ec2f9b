import type { AgentTicks } from "../src/model/records";
import type { StoredRun } from "../src/model/report";
import { random, storedRun } from "./synthetic";

const MOST = 3000;

/** Ticks of all agents in second `n`: the second agent is lost from `lostFrom` on; of each fifty, one has three times the CPU and latency, and another a lag of 9 ms. */
export function agentTicks(agents: number, n: number, lostFrom: number, share: number): AgentTicks {
  const column = (of: (place: number, draw: () => number) => number) => Array.from({ length: agents }, (_, place) => Math.round(of(place, random(1000 * n + place))));
  const isLost = (place: number) => place === 1 && n >= lostFrom;
  const there = (of: (place: number, draw: () => number) => number) => column((place, draw) => (isLost(place) ? 0 : of(place, draw)));
  const busy = (place: number) => (place % 50 === 7 ? 3 : 1);
  return {
    reports: there(() => 1),
    lost: column((place) => (isLost(place) ? 1 : 0)),
    open: there(() => (MOST * share) / agents),
    connects: there(() => (share < 1 ? MOST / agents / 10 : 0)),
    requests: there((_, draw) => ((MOST * share) / agents / 30) * (0.9 + 0.2 * draw())),
    faults: there((place) => (place === 0 && n % 20 === 5 ? 3 : 0)),
    latency_p99_us: there((place, draw) => 4000 * busy(place) * (0.7 + 0.6 * draw())),
    lag_p99_us: there((place, draw) => (place % 50 === 33 ? 9000 : 300) * (0.7 + 0.6 * draw())),
    cpu_ms: there((place, draw) => 1000 * busy(place) * (0.7 + 0.6 * draw()) * share),
  };
}

/** A run of `seconds` seconds on `agents` agents. */
export function fleetRun(agents: number, seconds: number): StoredRun {
  const run = storedRun(seconds, 1, MOST);
  const width = String(agents).length;
  run.run.header.agents = Array.from({ length: agents }, (_, place) => ({ id: `load-${String(place).padStart(width, "0")}`, wanted: Math.round(MOST / agents), cores: 4 }));
  run.ticks.forEach((record, n) => {
    const { tick } = record;
    tick.agents = agentTicks(agents, n, Math.floor(seconds / 2), tick.open / MOST);
    tick.cpu_ns = tick.agents.cpu_ms.reduce((sum, ms) => sum + ms, 0) * 1e6;
  });
  return run;
}
