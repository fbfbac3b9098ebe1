// /v1/chat/completions and /v1/models through the `openai` package.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { collect, context, idleWithin, isWeather, model, openai, question, say, steady, strangers, weather } from './target.mjs';

const create = (more = {}) => openai.chat.completions.create({ ...steady, messages: question, ...more });
const tools = [{ type: 'function', function: weather }];

function assertUsage(usage) {
  assert.ok(usage.prompt_tokens > 0 && usage.completion_tokens > 0);
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  assert.ok(usage.prompt_tokens_details.cached_tokens >= 0);
}

test('models: list, retrieve, unknown', async () => {
  const { data } = await openai.models.list();
  assert.ok(data.length > 0);
  for (const one of data) {
    assert.equal(one.object, 'model');
    assert.ok(one.created > 1e9 && one.owned_by && one.max_model_len > 0 && one.meta.n_ctx > 0);
    assert.notEqual(one.name, null);
  }
  assert.equal((await openai.models.retrieve(model)).id, model);
  await assert.rejects(openai.models.retrieve('no-such-model'), OpenAI.NotFoundError);
});

test('an answer in one piece', async () => {
  const answer = await create();
  assert.match(answer.id, /^chatcmpl-/);
  assert.equal(answer.object, 'chat.completion');
  assert.equal(answer.choices.length, 1);
  const [{ message, finish_reason, index }] = answer.choices;
  assert.equal(index, 0);
  assert.equal(message.role, 'assistant');
  assert.ok(message.content.length > 0);
  assert.ok(['stop', 'length'].includes(finish_reason));
  assert.equal(message.reasoning_content, undefined);
  assertUsage(answer.usage);
});

test('a stream says the same, in the order that clients expect', async () => {
  const whole = await create();
  const chunks = await collect(await create({ stream: true, stream_options: { include_usage: true } }));
  assert.equal(new Set(chunks.map((chunk) => `${chunk.id} ${chunk.created} ${chunk.model}`)).size, 1);
  assert.ok(chunks.every((chunk) => chunk.object === 'chat.completion.chunk'));
  assert.equal(chunks[0].choices[0].delta.role, 'assistant');
  assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join(''), whole.choices[0].message.content);
  const last = chunks.at(-1);
  assert.deepEqual(last.choices, []);
  assertUsage(last.usage);
  assert.equal(last.usage.completion_tokens, whole.usage.completion_tokens);
  const finishes = chunks.filter((chunk) => chunk.choices[0]?.finish_reason);
  assert.deepEqual(finishes.map((chunk) => chunk.choices[0].finish_reason), [whole.choices[0].finish_reason]);
  assert.equal(finishes[0], chunks.at(-2));
});

test('usage is streamed only when asked for, timings are never null', async () => {
  for (const options of [undefined, { include_usage: false }]) {
    for (const chunk of await collect(await create({ stream: true, stream_options: options }))) {
      assert.ok(!('usage' in chunk), JSON.stringify(chunk));
      assert.notEqual(chunk.timings, null);
      assert.ok(chunk.choices.length > 0);
    }
  }
});

test('timings come in the shape that dashboards read', async () => {
  const { timings, usage } = await create();
  for (const name of ['prompt_n', 'prompt_ms', 'predicted_n', 'predicted_ms', 'cache_n']) assert.equal(typeof timings[name], 'number', name);
  assert.equal(timings.predicted_n, usage.completion_tokens);
  assert.equal(timings.prompt_n + timings.cache_n, usage.prompt_tokens);
  if (timings.draft_n) assert.ok(timings.draft_n_accepted <= timings.draft_n);
});

test('limits, under both names', async () => {
  for (const limit of [{ max_tokens: 3 }, { max_tokens: undefined, max_completion_tokens: 3 }]) {
    const { choices, usage } = await create(limit);
    assert.equal(choices[0].finish_reason, 'length');
    assert.equal(usage.completion_tokens, 3);
  }
});

test('stop strings end the answer and are not part of it', async () => {
  const { content } = (await create()).choices[0].message;
  const stop = content.slice(Math.floor(content.length / 2), Math.floor(content.length / 2) + 4);
  for (const form of [stop, ['never in there ☂', stop]]) {
    const { message, finish_reason } = (await create({ stop: form })).choices[0];
    assert.equal(message.content, content.slice(0, content.indexOf(stop)));
    assert.equal(finish_reason, 'stop');
  }
});

test('log probabilities belong to the tokens', async () => {
  const { message, logprobs } = (await create({ logprobs: true, top_logprobs: 3 })).choices[0];
  assert.equal(Buffer.from(logprobs.content.flatMap((token) => token.bytes)).toString(), message.content);
  for (const token of logprobs.content) {
    assert.ok(token.logprob <= 0);
    assert.equal(token.top_logprobs.length, 3);
    const tops = token.top_logprobs.map((top) => top.logprob);
    assert.deepEqual(tops, tops.toSorted((a, b) => b - a));
    assert.ok(Math.abs(tops[0] - token.logprob) < 1e-5, 'greedy takes the likeliest');
  }
  const chunks = await collect(await create({ logprobs: true, top_logprobs: 2, stream: true }));
  const streamed = chunks.flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? []);
  assert.equal(Buffer.from(streamed.flatMap((token) => token.bytes)).toString(), message.content);
});

test('several answers to one question', async () => {
  const { choices } = await create({ n: 2, temperature: 1, seed: 5 });
  assert.deepEqual(choices.map((choice) => choice.index), [0, 1]);
  for (const { message, finish_reason } of choices) {
    // Small models write calls unasked; a client that offered no tools could not make them.
    assert.equal(message.tool_calls, undefined, 'no tools were offered');
    assert.ok(message.content.length > 0 && ['stop', 'length'].includes(finish_reason));
  }
});

test('a seed gives the same answer again', async () => {
  const seeded = { temperature: 1.2, seed: 12345 };
  const texts = await Promise.all([1, 2, 3].map(async () => (await create(seeded)).choices[0].message.content));
  assert.equal(new Set(texts).size, 1);
});

test('thinking has its own field and counts', async () => {
  const thinking = { chat_template_kwargs: { enable_thinking: true }, max_tokens: 40 };
  const answer = await create(thinking);
  const { message, finish_reason } = answer.choices[0];
  assert.ok(message.reasoning_content.length > 0);
  assert.ok(!/<\/?think>/.test((message.content ?? '') + message.reasoning_content));
  assert.ok(answer.usage.completion_tokens_details.reasoning_tokens > 0);
  if (!message.content) assert.equal(finish_reason, 'length');
  const chunks = await collect(await create({ ...thinking, stream: true }));
  assert.equal(chunks.map((chunk) => chunk.choices[0].delta.reasoning_content ?? '').join(''), message.reasoning_content);
  assert.equal(chunks.map((chunk) => chunk.choices[0].delta.content ?? '').join(''), message.content ?? '');
});

test('a required tool is called with arguments of its schema', async () => {
  for (const tool_choice of ['required', { type: 'function', function: { name: weather.name } }]) {
    const { message, finish_reason } = (await create({ tools, tool_choice, max_tokens: 200 })).choices[0];
    assert.equal(finish_reason, 'tool_calls');
    assert.ok(message.tool_calls.length >= 1);
    for (const call of message.tool_calls) {
      assert.equal(call.type, 'function');
      assert.equal(call.function.name, weather.name);
      assert.ok(call.id && isWeather(JSON.parse(call.function.arguments)), call.function.arguments);
    }
  }
});

test('a streamed tool call: index always, name once, arguments in pieces', async () => {
  const chunks = await collect(await create({ tools, tool_choice: 'required', parallel_tool_calls: false, max_tokens: 200, stream: true }));
  const deltas = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
  assert.ok(deltas.length > 1, 'arguments come in pieces');
  assert.ok(deltas.every((delta) => delta.index === 0));
  assert.ok(deltas[0].id && deltas[0].type === 'function' && deltas[0].function.name === weather.name);
  for (const delta of deltas.slice(1)) assert.deepEqual([delta.id, delta.type, delta.function.name], [undefined, undefined, undefined]);
  assert.ok(isWeather(JSON.parse(deltas.map((delta) => delta.function.arguments ?? '').join(''))));
  assert.equal(chunks.findLast((chunk) => chunk.choices[0]?.finish_reason).choices[0].finish_reason, 'tool_calls');
  assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('').trim(), '');
});

test('a tool result is read; no tool is called against tool_choice none', async () => {
  const call = { id: 'call_1', type: 'function', function: { name: weather.name, arguments: '{"city":"Oslo","days":2}' } };
  const messages = [...say('How is the weather in Oslo?'), { role: 'assistant', content: null, tool_calls: [call] }, { role: 'tool', tool_call_id: 'call_1', content: '{"sky":"clear"}' }];
  const { message, finish_reason } = (await create({ messages, tools, tool_choice: 'none' })).choices[0];
  assert.equal(message.tool_calls, undefined);
  assert.ok(['stop', 'length'].includes(finish_reason));
});

test('a JSON schema is kept to', async () => {
  const Shape = z.object({ kind: z.enum(['ship', 'boat']), length: z.number().int().min(1).max(99), tags: z.array(z.enum(['old', 'new'])).min(1).max(2) });
  const answer = await openai.chat.completions.parse({ ...steady, max_tokens: 120, messages: say('Describe a ship as JSON.'), response_format: zodResponseFormat(Shape, 'ship') });
  assert.equal(answer.choices[0].finish_reason, 'stop');
  assert.ok(Shape.safeParse(answer.choices[0].message.parsed).success, answer.choices[0].message.content);
  const chunks = await collect(await create({ stream: true, max_tokens: 120, response_format: zodResponseFormat(Shape, 'ship') }));
  assert.ok(Shape.safeParse(JSON.parse(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join(''))).success);
});

test('errors have the classes, codes and parameters that clients look at', async () => {
  await assert.rejects(strangers.openai.chat.completions.create({ ...steady, messages: question }), (error) =>
    error instanceof OpenAI.AuthenticationError && error.type === 'authentication_error');
  await assert.rejects(create({ model: 'no-such-model' }), (error) =>
    error instanceof OpenAI.NotFoundError && error.type === 'not_found_error' && error.message.includes(model));
  await assert.rejects(create({ temperature: 99 }), (error) =>
    error instanceof OpenAI.BadRequestError && error.type === 'invalid_request_error' && error.param === 'temperature');
  await assert.rejects(create({ messages: [] }), OpenAI.BadRequestError);
  await assert.rejects(create({ messages: say('word '.repeat(context + 10)) }), (error) =>
    error instanceof OpenAI.BadRequestError && error.code === 'context_length_exceeded' && /maximum context length is \d+ tokens/.test(error.message)
      && error.error.n_ctx === context && error.error.n_prompt_tokens > context && Boolean(error.requestID));
});

test('a client that leaves is let go, and others are served meanwhile', async () => {
  const leave = async () => {
    const stream = await create({ stream: true, max_tokens: 2000, ignore_eos: true });
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) break; // leaving the loop aborts the request
    }
    assert.ok(stream.controller.signal.aborted);
  };
  await Promise.all(Array.from({ length: 6 }, leave));
  assert.ok(await idleWithin(1000), 'answers go on without a reader');
  assert.ok((await create()).choices[0].message.content);
});
