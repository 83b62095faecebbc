import assert from "node:assert/strict";
import { test } from "node:test";
import { generateText, isStepCount } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { Eunoe } from "eunoe";
import { memoryTools } from "eunoe/ai-sdk";

const client = new Eunoe({ url: process.env.EUNOE_URL, key: process.env.EUNOE_KEY });
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const call = (toolName, input) => ({
  content: [{ type: "tool-call", toolCallId: toolName, toolName, input: JSON.stringify(input) }],
  finishReason: { unified: "tool-calls", raw: undefined },
  usage,
  warnings: [],
});
const say = (text) => ({ content: [{ type: "text", text }], finishReason: { unified: "stop", raw: undefined }, usage, warnings: [] });

test("a model remembers and recalls with the tools of the AI SDK", async () => {
  const scope = { user: "ts-ai", session: "s1" };
  const model = new MockLanguageModelV4({
    doGenerate: [call("remember", { text: "Anna is allergic to peanuts." }), call("recall", { query: "peanuts" }), say("No peanuts.")],
  });
  const { text, steps } = await generateText({
    model,
    tools: memoryTools(client, scope),
    stopWhen: isStepCount(5),
    prompt: "What must Anna not eat?",
  });
  assert.equal(text, "No peanuts.");
  assert.equal(steps[0].toolResults[0].output.outcome, "stored");
  assert.equal(steps[1].toolResults[0].output.memories[0].text, "Anna is allergic to peanuts.");
  assert.deepEqual(model.doGenerateCalls[0].tools.map((each) => each.name), ["recall", "remember"]);
  assert.equal((await client.list(scope)).items.length, 1);
});

test("a model that may only read has no tool to write", () => {
  assert.deepEqual(Object.keys(memoryTools(client, "user=anna", { readOnly: true })), ["recall"]);
});
