// /v1/completions, /v1/responses and /v1/embeddings through the `openai` package.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { collect, isWeather, model, openai, weather } from './target.mjs';

const complete = (more) => openai.completions.create({ model, temperature: 0, max_tokens: 12, prompt: 'The sea is', ...more });
const respond = (more) => openai.responses.create({ model, temperature: 0, max_output_tokens: 48, input: 'Write one sentence about the sea.', reasoning: { effort: 'none' }, ...more });
const functions = [{ type: 'function', strict: true, ...weather }];

test('completions: whole and streamed', async () => {
  const whole = await complete();
  assert.equal(whole.object, 'text_completion');
  assert.ok(whole.choices[0].text.length > 0 && ['stop', 'length'].includes(whole.choices[0].finish_reason));
  assert.equal(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens);
  const chunks = await collect(await complete({ stream: true, stream_options: { include_usage: true } }));
  assert.equal(chunks.map((chunk) => chunk.choices[0]?.text ?? '').join(''), whole.choices[0].text);
  assert.deepEqual(chunks.at(-1).choices, []);
  assert.equal(chunks.at(-1).usage.completion_tokens, whole.usage.completion_tokens);
});

test('completions: several prompts, token ids, echo, log probabilities', async () => {
  const many = await complete({ prompt: ['The sea is', 'The sky is'] });
  assert.deepEqual(many.choices.map((choice) => choice.index).toSorted(), [0, 1]);
  assert.equal((await complete({ prompt: [10, 11, 12] })).choices.length, 1);
  assert.ok((await complete({ echo: true })).choices[0].text.startsWith('The sea is'));
  const { logprobs, text } = (await complete({ logprobs: 2 })).choices[0];
  assert.equal(logprobs.tokens.join(''), text);
  assert.equal(logprobs.token_logprobs.length, logprobs.tokens.length);
  assert.ok(logprobs.token_logprobs.every((value) => value <= 0));
});

test('responses: whole', async () => {
  const response = await respond();
  assert.match(response.id, /^resp_/);
  assert.equal(response.object, 'response');
  assert.ok(['completed', 'incomplete'].includes(response.status));
  assert.ok(response.output_text.length > 0);
  assert.ok(response.usage.input_tokens > 0 && response.usage.output_tokens > 0);
  const cut = await respond({ max_output_tokens: 3 });
  assert.deepEqual([cut.status, cut.incomplete_details.reason], ['incomplete', 'max_output_tokens']);
});

test('responses: streamed events are in order and add up', async () => {
  const events = await collect(await respond({ stream: true }));
  const types = events.map((event) => event.type);
  assert.equal(types[0], 'response.created');
  assert.ok(['response.completed', 'response.incomplete'].includes(types.at(-1)));
  assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, i) => i));
  const order = ['response.output_item.added', 'response.content_part.added', 'response.output_text.delta', 'response.output_text.done', 'response.content_part.done', 'response.output_item.done'].map((type) => types.indexOf(type));
  assert.ok(order.every((at) => at > 0));
  assert.deepEqual(order, order.toSorted((a, b) => a - b));
  const text = events.filter((event) => event.type === 'response.output_text.delta').map((event) => event.delta).join('');
  assert.equal(text, events.find((event) => event.type === 'response.output_text.done').text);
  assert.equal(text, (await respond()).output_text);
});

test('responses: the stream helper puts the whole together', async () => {
  const stream = openai.responses.stream({ model, temperature: 0, max_output_tokens: 48, input: 'Hello', reasoning: { effort: 'none' } });
  const final = await stream.finalResponse();
  assert.ok(final.output_text.length > 0);
});

test('responses: tools, and their results in the next turn', async () => {
  const asked = { input: 'Weather in Rome?', tools: functions, tool_choice: 'required', max_output_tokens: 200 };
  const call = (await respond(asked)).output.find((item) => item.type === 'function_call');
  assert.equal(call.name, weather.name);
  assert.ok(call.call_id && isWeather(JSON.parse(call.arguments)));
  const events = await collect(await respond({ ...asked, stream: true }));
  const pieces = events.filter((event) => event.type === 'response.function_call_arguments.delta').map((event) => event.delta).join('');
  assert.equal(pieces, events.find((event) => event.type === 'response.function_call_arguments.done').arguments);
  const next = await respond({ input: [{ role: 'user', content: 'Weather in Rome?' }, call, { type: 'function_call_output', call_id: call.call_id, output: 'sunny' }], tools: functions, tool_choice: 'none' });
  assert.ok(next.output_text.length > 0);
});

test('responses: a JSON schema is kept to', async () => {
  const response = await respond({ max_output_tokens: 120, text: { format: { type: 'json_schema', name: 'weather', strict: true, schema: weather.parameters } } });
  assert.ok(isWeather(JSON.parse(response.output_text)), response.output_text);
});

test('what cannot be done is refused clearly', async () => {
  await assert.rejects(respond({ previous_response_id: 'resp_123' }), (error) => error instanceof OpenAI.BadRequestError && error.message.includes('previous_response_id'));
  await assert.rejects(openai.embeddings.create({ model, input: 'x' }), (error) => error instanceof OpenAI.APIError && [400, 404, 501].includes(error.status) && error.message.length > 10);
});
