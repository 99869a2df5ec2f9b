import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, count, percent, rate, signed, span, time, type Quantity } from "../../src/model/quantity";
import type { Summary } from "../../src/model/records";
import { commandLine, nameOf, runOf } from "../../src/model/run";
import { judgement } from "../../src/model/verdict";
import type { Lenient } from "../../src/model/lenient";

test("figures are written to be read", () => {
  const check = (quantity: Quantity, value: number, expected: string) => assert.equal(quantity.text(value), expected);
  check(count, 0, "0");
  check(count, 0.25, "0.25");
  check(count, 999.6, "1,000");
  check(count, 9_876, "9,876");
  check(count, 10_000, "10k");
  check(count, 123_456, "123k");
  check(count, 999_999, "1M");
  check(count, 1_500_000, "1.5M");
  check(count, -20_000, "−20k");
  check(rate, 1486.8, "1,487/s");
  check(time, 0, "0 ns");
  check(time, 0.0649, "64.9 ns");
  check(time, 350, "350 µs");
  check(time, 999.7, "1 ms");
  check(time, 1234, "1.23 ms");
  check(time, 12e6, "12 s");
  check(time, 90e6, "1m30s");
  check(bytes, 512, "512 B");
  check(bytes, 1023.9, "1 KiB");
  check(bytes, 8515, "8.32 KiB");
  check(bytes, 3 * 2 ** 30, "3 GiB");
  assert.deepEqual([span(5.12), span(59.6), span(3600), span(3725)], ["5.12 s", "59.6 s", "1h", "1h2m5s"]);
});

test("nothing has no sign", () => {
  assert.deepEqual([0.24, -1.26, 0, -0, -0.04, 0.04].map((n) => signed(n, 1)), ["+0.2", "−1.3", "0.0", "0.0", "0.0", "0.0"]);
});

test("only nothing is 0 %, and only all is 100 %", () => {
  const check = (share: number, expected: string) => assert.equal(percent(share), expected, `${share}`);
  check(0, "0 %");
  check(1e-9, "<0.01 %");
  check(0.0001, "0.01 %");
  check(0.005, "0.50 %");
  check(0.0314, "3.1 %");
  check(0.219, "22 %");
  check(0.31, "31 %");
  check(0.994, "99 %");
  check(0.997, "99.7 %");
  check(0.9994, "99.9 %");
  check(0.9996, ">99.9 %");
  check(0.999999, ">99.9 %");
  check(1, "100 %");
  check(1.25, "125 %");
});

test("a verdict has the words of the text summary", () => {
  const check = (summary: Lenient<Summary>, word: string, sentence: string) => {
    const judged = judgement(summary, false);
    assert.deepEqual([judged.word, judged.sentence], [word, sentence]);
  };
  const sentence = "limited by the target's open files at 65,536: raise LimitNOFILE";
  check({ verdict: "fail", headline: `fail: ${sentence}` }, "fail", sentence);
  check({ verdict: "pass", headline: "pass: all 3,000 connections held" }, "pass", "all 3,000 connections held");
  check({ verdict: "interrupted", headline: "interrupted" }, "interrupted", "");
  check({ verdict: "fail" }, "fail", "");
  const limit = { detail: "seen" };
  assert.deepEqual(judgement({ verdict: "fail", reasons: ["threshold x", "y"], limit }, false).seen, ["y", "seen"]);
  // What the headline, or a reason, says is not said again.
  const late: Lenient<Summary> = { verdict: "invalid", headline: "invalid: throng was late; wait", reasons: ["throng was late", "y"], limit: { detail: "y" } };
  assert.deepEqual(judgement(late, false).seen, ["y"]);
  assert.deepEqual([judgement(null, true).word, judgement(null, false).word], ["running", "unfinished"]);
});

test("a command line can be typed again", () => {
  const check = (words: string[], expected: string) => assert.equal(commandLine({ words, header: { seed: 42 } }), expected);
  check(["run", "http://127.0.0.1/", "-c", "5"], "throng run http://127.0.0.1/ -c 5 --seed 42");
  check(["run", "a b", "it's", "", "$x"], "throng run 'a b' 'it'\\''s' '' '$x' --seed 42");
  check(["run", "--seed", "7"], "throng run --seed 7");
  check(["run", "--seed=7"], "throng run --seed=7");
  assert.equal(commandLine({}), "throng");
});

test("runs of a comparison are told apart", () => {
  const name = (id: string, tags: string[]) => nameOf(runOf({ id, run: { tags } }), 1);
  assert.deepEqual([name("abc", []), name("abc", ["a=b", "c"]), name("", [])], ["abc", "abc a=b c", "run 2"]);
});
