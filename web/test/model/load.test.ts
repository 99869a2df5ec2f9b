import assert from "node:assert/strict";
import { test } from "node:test";
import { examples, readLoad, type LoadRequest } from "../../src/model/load";
import { refusal } from "../../src/model/refusal";

test("a load is a number of connections as flags take it, or a share", () => {
  const check = (text: string, planned: number, request: LoadRequest) => assert.deepEqual(readLoad(text, planned), { request }, text);
  check("200k", 400_000, { connections: 200_000 });
  check("1.1m", 2_000_000, { connections: 1_100_000 });
  check("1.50M", 3_000_000, { connections: 1_500_000 });
  check(" 1,500 ", 3000, { connections: 1500 });
  check("1_500", 3000, { connections: 1500 });
  check("0.5 k", 1000, { connections: 500 });
  check("3000", 3000, { connections: 3000 });
  check("1", 3, { connections: 1 });
  check("90 %", 3000, { load: 0.9 });
  check("12.5%", 0, { load: 0.125 });
  check("33.33333 %", 0, { load: 0.333333 });
  check("100%", 10, { load: 1 });
});

test("what is no load is said with the fix", () => {
  const check = (text: string, planned: number, trouble: string) => assert.deepEqual(readLoad(text, planned), { trouble }, text);
  for (const text of ["half", "-5", "5%%", "1,5", "1,50k", "1e3", "5s", "%", "90,5 %"]) check(text, 3000, `"${text}" is not a load; use 1,500 or 90 %`);
  check("half", 0, '"half" is not a load; use 90 %');
  check("1.5", 3000, '"1.5" is not a whole number of connections; use 1,500 or 90 %');
  check("1.0005k", 3000, '"1.0005k" is not a whole number of connections; use 1,500 or 90 %');
  check("500k", 400_000, '"500k" is more than the plan\'s 400,000 connections; use at most 100 %');
  check("100.1 %", 3000, '"100.1 %" is more than the plan\'s load; use at most 100 %');
  check("50", 0, '"50": this run has no fixed number of connections; use a percentage, such as 90 %');
  for (const text of ["0", "0 %", "0.00001%"]) check(text, 3000, "a load must be above 0; use Pause");
});

test("examples are ones that may be typed", () => {
  assert.deepEqual([1, 3000, 4000, 400_000, 4_000_000].map((planned) => examples(planned)[0]), ["1", "1,500", "2k", "200k", "2m"]);
  for (const planned of [1, 3, 999, 3000, 1_500_000]) for (const text of examples(planned)) assert.ok("request" in readLoad(text, planned), text);
  assert.deepEqual(examples(0), ["90 %"]);
});

test("a refusal is a sentence, whoever wrote it", () => {
  const check = (body: string, expected: string) => assert.equal(refusal(body, 400), expected, body);
  check('{"errors":["the load can be set up to the plan\'s, 300 connections"]}\n', "the load can be set up to the plan's, 300 connections");
  check('{"errors":["one change at a time","speed: no key of a change"]}', "one change at a time. Speed: no key of a change");
  check('{"error":"no such path"}', "no such path");
  check("the run has ended\n", "the run has ended");
  for (const body of ["", " \n", "{}", '{"errors":[]}', '{"errors":[7]}', "[]", "<html>502</html>"]) check(body, "refused with status 400");
});
