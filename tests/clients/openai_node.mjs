// SPDX-License-Identifier: Apache-2.0
// node openai_node.mjs URL MODEL FOLDER-WITH-node_modules: prints the name of each check that held; the first that does not ends it.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [url, model, folder] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const { OpenAI } = require("openai");
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const messages = [{ role: "user", content: "What is the capital of France? Answer in one short sentence." }];
const ask = { model, messages, max_tokens: 24, temperature: 0 };
const parameters = { type: "object", properties: { city: { type: "string", maxLength: 20 } }, required: ["city"], additionalProperties: false };
const tools = [{ type: "function", function: { name: "get_weather", strict: true, parameters } }];

const models = await client.models.list();
assert(models.data.some((m) => m.id === model));
console.log("models");

const whole = await client.chat.completions.create(ask);
const text = whole.choices[0].message.content;
assert.match(text, /Paris/);
console.log("chat");

let pieces = "", usage = null;
for await (const chunk of await client.chat.completions.create({ ...ask, stream: true, stream_options: { include_usage: true } })) {
  pieces += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}
assert.equal(pieces, text);
assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
console.log("stream");

const final = await client.chat.completions.stream(ask).finalChatCompletion();
assert.equal(final.choices[0].message.content, text);
console.log("stream-helper");

const called = await client.chat.completions.stream({ ...ask, max_tokens: 100, tools, tool_choice: "required" }).finalChatCompletion();
const call = called.choices[0].message.tool_calls[0];
assert.equal(call.function.name, "get_weather");
assert.deepEqual(Object.keys(JSON.parse(call.function.arguments)), ["city"]);
assert.equal(called.choices[0].finish_reason, "tool_calls");
console.log("tools");

const answer = await client.responses.create({ model, input: "What is the capital of France?", max_output_tokens: 24, temperature: 0 });
const streamed = await client.responses.stream({ model, input: "What is the capital of France?", max_output_tokens: 24, temperature: 0 }).finalResponse();
assert.equal(streamed.output_text, answer.output_text);
console.log("responses");

const controller = new AbortController();
const endless = await client.chat.completions.create({ ...ask, max_tokens: 2000, ignore_eos: true, stream: true }, { signal: controller.signal });
let seen = 0;
for await (const _ of endless) if (++seen === 3) controller.abort();
assert(seen < 50);
console.log("abort");

await assert.rejects(client.chat.completions.create({ ...ask, model: "no-such-model" }), (e) => e.status === 404 && e.code === "model_not_found");
await assert.rejects(client.chat.completions.create({ ...ask, top_p: 7 }), (e) => e.status === 400 && e.param === "top_p");
console.log("errors");
