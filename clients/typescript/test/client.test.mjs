import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { inspect } from "node:util";
import { ConnectionError, Eunoe, EunoeError } from "eunoe";

const url = process.env.EUNOE_URL;
const key = process.env.EUNOE_KEY;
const client = new Eunoe({ url, key });
const code = (expected) => (error) => error instanceof EunoeError && error.code === expected;

test("what is observed and remembered is recalled, with reasons", async () => {
  const scope = { user: "ts-recall" };
  const receipts = await client.observe(scope, [{ role: "user", content: "My dog is called Bruno." }, "It rained."]);
  assert.deepEqual(receipts.map((each) => each.outcome), ["stored", "stored"]);
  const kept = await client.remember(scope, { text: "Anna is allergic to peanuts.", label: "health" });
  const { hits } = await client.recall(scope, "peanuts", { limit: 1 });
  assert.equal(hits[0].id, kept.id);
  assert.equal(hits[0].scope, "user=ts-recall");
  assert.ok(hits[0].reasons.length > 0);
  assert.match((await client.context(scope, "What must Anna not eat?")).text, /peanuts/);
  assert.equal((await client.lookUp(scope, ["Bruno", "peanuts"])).hits.length > 0, true);
});

test("a memory has versions, and is forgotten for good", async () => {
  const scope = "user=ts-versions";
  const old = await client.remember(scope, { text: "Anna lives in Paris.", id: "a/b ?#" });
  const update = await client.update(scope, old.id, { text: "Anna lives in Rome." });
  assert.deepEqual((await client.history(scope, update.id)).map((each) => each.text), ["Anna lives in Paris.", "Anna lives in Rome."]);
  assert.equal((await client.pin(scope, update.id)).outcome, "stored");
  const report = await client.forget(scope, { everything: true, verify: true });
  assert.equal(report.verified, true);
  await assert.rejects(client.get(scope, old.id), code("not_found"));
});

test("lists are read page by page", async () => {
  await client.rememberMany({ user: "ts-pages" }, Array.from({ length: 25 }, (_, number) => `Fact ${number}.`));
  const texts = [];
  for await (const item of client.listAll({ user: "ts-pages" }, { limit: 10, kinds: ["fact"] })) texts.push(item.text);
  assert.equal(texts.length, 25);
  assert.deepEqual(await client.scopes({ user: "ts-pages" }), ["user=ts-pages"]);
  assert.equal((await client.streams({ user: "ts-pages" }))[0].facts, 25);
});

test("a scope with odd values is the same in an address and in a body", async () => {
  const scope = { user: "50% a/b & ü", session: 7 };
  await client.remember(scope, { text: "odd", id: "f1" });
  assert.equal((await client.get(scope, "f1")).text, "odd");
});

test("exports are streamed and imported", async () => {
  await client.remember("user=ts-export", "Anna\u2028likes tea.");
  const lines = [];
  for await (const line of client.export(["user=ts-export"])) lines.push(line);
  assert.ok(JSON.parse(lines[0]).eunoe >= 1);
  await client.forget("user=ts-export", { everything: true, may_return: true });
  assert.equal((await client.import(lines)).stored, 1);
  assert.equal((await client.list("user=ts-export")).items[0].text, "Anna\u2028likes tea.");
});

test("what is learned is told as it is learned", async () => {
  const stop = new AbortController();
  const events = client.events({ signal: stop.signal });
  let number = 0;
  const writer = setInterval(() => client.remember("user=ts-events", `Anna has ${++number} cats.`), 100); // until it listens
  for (let { value } = await events.next(); value.item.scope !== "user=ts-events"; ) ({ value } = await events.next());
  clearInterval(writer);
  stop.abort();
  for (let done = false; !done; ) ({ done } = await events.next());
});

test("errors have a code and a hint", async () => {
  await assert.rejects(client.recall("user=anna", ""), (error) => {
    assert.ok(error instanceof EunoeError);
    assert.equal(error.code, "input");
    assert.equal(error.status, 422);
    assert.ok(error.message && error.hint);
    return true;
  });
  await assert.rejects(client.list("nonsense"), code("scope"));
  await assert.rejects(new Eunoe({ url, key: "eun_wrong" }).status(), code("unauthorized"));
  await assert.rejects(client.request("GET", "/v1/nothing"), code("no_such_path"));
});

test("an address or key that cannot be right is refused", () => {
  for (const bad of ["http://example.org", "ftp://127.0.0.1", "http://a:b@127.0.0.1", "http://127.0.0.1?key=x", "nonsense"]) {
    assert.throws(() => new Eunoe({ url: bad, key }), TypeError, bad);
  }
  for (const bad of [undefined, null, "", "a b", "a\r\nX: y"]) assert.throws(() => new Eunoe({ url, key: bad }), TypeError);
  assert.ok(new Eunoe({ url: "http://example.org", key, insecure: true }));
  assert.doesNotMatch(inspect(client, { showHidden: true, depth: 9 }), new RegExp(key));
});

let scripted, requests, replies;
before(async () => {
  requests = [];
  replies = [];
  scripted = createServer((request, response) => {
    requests.push(request.headers);
    const reply = replies.shift() ?? [200, {}, '{"receipts": [], "hits": [], "notes": []}'];
    if (reply === "break") return request.socket.destroy();
    response.writeHead(reply[0], reply[1]).end(reply[2]);
  });
  await new Promise((resolve) => scripted.listen(0, "127.0.0.1", resolve));
});
after(() => scripted.close());
const flaky = (options = {}) => {
  requests.length = 0;
  return new Eunoe({ url: `http://127.0.0.1:${scripted.address().port}`, key: "eun_key", ...options });
};

test("a write is repeated under the same key", async () => {
  replies = ["break", [503, {}, "{}"]];
  await flaky().observe("user=anna", "hi");
  assert.equal(requests.length, 3);
  assert.equal(new Set(requests.map((each) => each["idempotency-key"])).size, 1);
});

test("what may not happen twice is sent once", async () => {
  replies = ["break"];
  await assert.rejects(flaky().forget("user=anna", { ids: ["a"] }), ConnectionError);
  assert.equal(requests.length, 1);
});

test("an id that an address would leave out is refused before anything is sent", async () => {
  const memory = flaky();
  for (const id of [".", ".."]) {
    for (const verb of ["get", "history", "pin"]) await assert.rejects(memory[verb]("user=anna", id), /cannot be sent/);
    await assert.rejects(memory.update("user=anna", id, { text: "x" }), TypeError);
  }
  await assert.rejects(memory.request("GET", "/v1/%2E%2e/metrics"), TypeError);
  assert.equal(requests.length, 0);
  await memory.get("user=anna", "...");
  await memory.get("user=anna", ".a");
  assert.equal(requests.length, 2);
});

test("a redirect is not followed", async () => {
  replies = Array(3).fill([307, { Location: url }, ""]);
  await assert.rejects(flaky().status(), ConnectionError);
});

test("a server that hangs is given up", async () => {
  const hanging = createServer(() => {});
  await new Promise((resolve) => hanging.listen(0, "127.0.0.1", resolve));
  const slow = new Eunoe({ url: `http://127.0.0.1:${hanging.address().port}`, key: "eun_key", timeout: 50 });
  await assert.rejects(slow.status(), (error) => error instanceof ConnectionError && /in time/.test(error.message));
  hanging.closeAllConnections();
  hanging.close();
});
