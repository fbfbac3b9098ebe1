// /v1/messages through `@anthropic-ai/sdk`, as Claude Code uses it.
import Anthropic from '@anthropic-ai/sdk';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anthropic, collect, context, idleWithin, isWeather, model, question, say, strangers, weather } from './target.mjs';

const steady = { model, max_tokens: 48, temperature: 0, messages: question };
const create = (more = {}) => anthropic.messages.create({ ...steady, ...more });
const tools = [{ name: weather.name, description: weather.description, input_schema: weather.parameters }];
const textOf = (message) => message.content.filter((block) => block.type === 'text').map((block) => block.text).join('');

test('an answer in one piece', async () => {
  const message = await create();
  assert.match(message.id, /^msg_/);
  assert.deepEqual([message.type, message.role], ['message', 'assistant']);
  assert.ok(textOf(message).length > 0);
  assert.ok(['end_turn', 'max_tokens'].includes(message.stop_reason));
  assert.ok(message.usage.input_tokens > 0 && message.usage.output_tokens > 0);
  assert.ok(message.usage.cache_read_input_tokens >= 0);
});

test('a stream has its events in order and says the same', async () => {
  const whole = await create();
  const events = await collect(await create({ stream: true }));
  const types = events.map((event) => event.type).filter((type) => type !== 'ping');
  assert.deepEqual([types[0], types[1], ...types.slice(-3)], ['message_start', 'content_block_start', 'content_block_stop', 'message_delta', 'message_stop']);
  assert.ok(types.slice(2, -3).every((type) => type === 'content_block_delta'));
  assert.ok(events[0].message.usage.input_tokens > 0);
  assert.equal(events[0].message.stop_reason, null);
  const delta = events.find((event) => event.type === 'message_delta');
  assert.equal(delta.delta.stop_reason, whole.stop_reason);
  assert.equal(delta.usage.output_tokens, whole.usage.output_tokens);
  const text = events.filter((event) => event.type === 'content_block_delta').map((event) => event.delta.text).join('');
  assert.equal(text, textOf(whole));
});

test('the stream helper puts the message together', async () => {
  const message = await anthropic.messages.stream(steady).finalMessage();
  assert.equal(textOf(message), textOf(await create()));
});

test('thinking comes first, in a block with a signature', async () => {
  const asked = { ...steady, max_tokens: 60, thinking: { type: 'enabled', budget_tokens: 1024 } };
  const events = await collect(anthropic.messages.stream(asked));
  const start = events.find((event) => event.type === 'content_block_start');
  assert.deepEqual([start.index, start.content_block.type], [0, 'thinking']);
  const deltas = events.filter((event) => event.type === 'content_block_delta' && event.index === 0).map((event) => event.delta.type);
  assert.ok(deltas.length > 1 && deltas.at(-1) === 'signature_delta' && deltas.slice(0, -1).every((type) => type === 'thinking_delta'));
  const message = await anthropic.messages.create(asked);
  assert.ok(message.content[0].type === 'thinking' && message.content[0].thinking.length > 0);
  if (message.content.length === 1) assert.equal(message.stop_reason, 'max_tokens');
});

test('tools: called, streamed, answered', async () => {
  const asked = { max_tokens: 200, tools, tool_choice: { type: 'any' }, messages: say('How is the weather in Oslo?') };
  const message = await create(asked);
  assert.equal(message.stop_reason, 'tool_use');
  const use = message.content.find((block) => block.type === 'tool_use');
  assert.ok(use.id && use.name === weather.name && isWeather(use.input), JSON.stringify(use.input));

  const events = await collect(await create({ ...asked, tool_choice: { type: 'tool', name: weather.name }, stream: true }));
  const start = events.find((event) => event.type === 'content_block_start' && event.content_block.type === 'tool_use');
  assert.deepEqual(start.content_block.input, {});
  const json = events.filter((event) => event.delta?.type === 'input_json_delta').map((event) => event.delta.partial_json).join('');
  assert.ok(isWeather(JSON.parse(json)), json);

  const answer = await create({ tools, messages: [
    ...asked.messages, { role: 'assistant', content: [{ type: 'text', text: 'Let me see.' }, use] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: [{ type: 'text', text: 'sunny' }] }, { type: 'text', text: 'Thanks. And now?' }] },
  ], tool_choice: { type: 'none' } });
  assert.ok(!answer.content.some((block) => block.type === 'tool_use'));
});

test('stop sequences are named', async () => {
  const text = textOf(await create());
  const stop = text.slice(Math.floor(text.length / 2), Math.floor(text.length / 2) + 4);
  const message = await create({ stop_sequences: ['☂☂', stop] });
  assert.deepEqual([message.stop_reason, message.stop_sequence], ['stop_sequence', stop]);
  assert.equal(textOf(message), text.slice(0, text.indexOf(stop)));
});

test('tokens are counted as they are later used', async () => {
  const asked = { model, messages: say('How is the weather in Oslo?'), system: 'Be brief.', tools };
  const { input_tokens } = await anthropic.messages.countTokens(asked);
  const { usage } = await create({ ...asked, max_tokens: 2 });
  assert.equal(usage.input_tokens + usage.cache_read_input_tokens + (usage.cache_creation_input_tokens ?? 0), input_tokens);
  assert.ok(input_tokens > (await anthropic.messages.countTokens({ model, messages: asked.messages })).input_tokens);
});

test('system as text and as blocks is the same prompt', async () => {
  const { input_tokens: text } = await anthropic.messages.countTokens({ model, messages: question, system: 'Be brief.' });
  const blocks = [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }];
  assert.equal((await anthropic.messages.countTokens({ model, messages: question, system: blocks })).input_tokens, text);
});

test('errors have their classes and the shape of this API', async () => {
  const shaped = (type) => (error) => error.error.type === 'error' && error.error.error.type === type && error.error.error.message.length > 0;
  await assert.rejects(strangers.anthropic.messages.create(steady), (error) => error instanceof Anthropic.AuthenticationError && shaped('authentication_error')(error));
  await assert.rejects(create({ model: 'no-such-model' }), (error) => error instanceof Anthropic.NotFoundError && shaped('not_found_error')(error));
  await assert.rejects(create({ max_tokens: undefined }), (error) => error instanceof Anthropic.BadRequestError && shaped('invalid_request_error')(error));
  await assert.rejects(create({ messages: [] }), Anthropic.BadRequestError);
  await assert.rejects(create({ messages: say('word '.repeat(context + 10)) }), (error) => error instanceof Anthropic.BadRequestError && shaped('invalid_request_error')(error));
});

test('a client that leaves is let go', async () => {
  const stream = anthropic.messages.stream({ ...steady, max_tokens: 2000, ignore_eos: true });
  for await (const event of stream) {
    if (event.type === 'content_block_delta') break;
  }
  stream.abort();
  assert.ok(await idleWithin(1000), 'the answer goes on without a reader');
  assert.ok(textOf(await create()));
});
