import assert from "node:assert/strict";
import { test } from "node:test";
import { EventReader, type StreamEvent } from "../../src/live/events";

const STREAM = 'retry: 1000\n\nevent: run\ndata: {"a": 1}\n\n: alive\n\ndata:x\r\ndata: y: z\r\n\r\nevent: end\ndata\n\nevent: lost\n\n';
const EVENTS: StreamEvent[] = [
  { name: "run", data: '{"a": 1}' },
  { name: "message", data: "x\ny: z" },
  { name: "end", data: "" },
];

test("events are the same however they are cut", () => {
  for (const size of [1, 2, 3, 7, 20, STREAM.length]) {
    const reader = new EventReader();
    const found: StreamEvent[] = [];
    for (let at = 0; at < STREAM.length; at += size) found.push(...reader.push(STREAM.slice(at, at + size)));
    assert.deepEqual(found, EVENTS, `in pieces of ${size}`);
  }
});
