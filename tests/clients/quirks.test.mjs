// Requests as particular clients send them, and what these clients are known to trip over.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { card, events, get, key, model, post, question, say, steady, url, weather } from './target.mjs';

const chat = (more, headers) => post('/v1/chat/completions', { ...steady, max_tokens: 8, messages: question, ...more }, headers);
const accepted = async (response) => {
  const body = await response.json();
  assert.equal(response.status, 200, JSON.stringify(body));
  return body;
};
const refused = async (response, status, type = 'invalid_request_error') => {
  const body = await response.json();
  assert.equal(response.status, status, JSON.stringify(body));
  assert.equal(body.error.type, type);
  assert.equal(typeof body.error.message, 'string');
  assert.ok('param' in body.error && 'code' in body.error, 'param and code are there, if only null');
  return body.error;
};

test('any client: the stream on the wire', async () => {
  const response = await chat({ stream: true, stream_options: { include_usage: true } });
  assert.match(response.headers.get('content-type'), /^text\/event-stream/);
  assert.ok(response.headers.get('x-request-id'));
  const list = await events(response);
  assert.equal(list.at(-1).data, '[DONE]');
  assert.ok(list.every(({ event }) => event === null));
  const chunks = list.slice(0, -1).map(({ data }) => JSON.parse(data));
  const spoken = chunks.filter((chunk) => chunk.choices[0]?.delta.content);
  const { completion_tokens } = chunks.at(-1).usage;
  assert.ok(spoken.length <= completion_tokens && spoken.length >= completion_tokens - 2, `${spoken.length} chunks for ${completion_tokens} tokens`);
});

test('llama-benchy 0.3 reads usage from every chunk that has it; vLLM and Open WebUI read no nulls', async () => {
  const list = await events(await chat({ stream: true }));
  for (const { data } of list.slice(0, -1)) {
    const chunk = JSON.parse(data);
    assert.ok(!('usage' in chunk) && chunk.timings !== null, data);
  }
});

test('Open WebUI: lists models, sends a title request beside the chat, cache_control inside parts', async () => {
  assert.ok(!('name' in card) || card.name !== null);
  const parts = [{ role: 'user', content: [{ type: 'text', text: 'Hello', cache_control: { type: 'ephemeral' } }] }];
  const [one, two] = await Promise.all([chat({ messages: parts, stream: false }), chat({ messages: say('### Task:\nGenerate a concise title.'), max_completion_tokens: 8, stream: false })]);
  await accepted(one);
  await accepted(two);
});

test('Roo and Cline: thinking switch, stream options, content parts, unknown fields', async () => {
  await accepted(await chat({ thinking: { type: 'enabled' }, reasoning_effort: 'medium', some_new_field: { a: 1 }, user: 'u', metadata: { a: 'b' }, store: false, service_tier: 'auto' }));
});

test('Cline: an answer that was all thinking ends with length, not stop', async () => {
  const { choices } = await accepted(await chat({ max_tokens: 2, chat_template_kwargs: { enable_thinking: true } }));
  assert.equal(choices[0].finish_reason, 'length');
});

test('vLLM users: fields that local servers know', async () => {
  await accepted(await chat({ top_k: 20, min_p: 0.01, repetition_penalty: 1.05, min_tokens: 1, ignore_eos: false, stop_token_ids: [1], skip_special_tokens: true, add_generation_prompt: true, cache_salt: 'a', priority: 0, presence_penalty: 0.1, frequency_penalty: 0.1, logit_bias: {} }));
  const regex = await accepted(await chat({ max_tokens: 30, structured_outputs: { regex: '[0-9]{3}-[a-z]{2}' } }));
  assert.match(regex.choices[0].message.content, /^[0-9]{3}-[a-z]{2}$/);
  const choice = await accepted(await chat({ max_tokens: 30, structured_outputs: { choice: ['yes', 'no'] } }));
  assert.ok(['yes', 'no'].includes(choice.choices[0].message.content));
});

test('history in all its forms', async () => {
  const call = (args) => ({ id: 'call_1', type: 'function', function: { name: 'f', arguments: args } });
  const histories = [
    [{ role: 'developer', content: 'Be brief.' }, ...question],
    [{ role: 'system', content: [{ type: 'text', text: 'Be brief.' }] }, ...question],
    [...question, { role: 'assistant', content: '' }, ...question],
    [...question, { role: 'assistant', content: 'Yes.', reasoning_content: 'Hm.' }, ...question],
    [...question, { role: 'assistant', content: 'Yes.', reasoning: 'Hm.' }, ...question],
    [...question, { role: 'system', content: 'A late one.' }, ...question],
    [...question, { role: 'assistant', content: null, tool_calls: [call('{"a":[1,{"b":"c"}]}')] }, { role: 'tool', tool_call_id: 'call_1', content: 'done' }],
    [...question, { role: 'assistant', tool_calls: [call('')] }, { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'done' }] }],
  ];
  for (const messages of histories) await accepted(await chat({ messages }));
});

test('Open WebUI and Roo: tool-call deltas on the wire', async () => {
  const list = await events(await chat({ max_tokens: 200, stream: true, tools: [{ type: 'function', function: weather }], tool_choice: 'required' }));
  const chunks = list.slice(0, -1).map(({ data }) => JSON.parse(data));
  const deltas = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
  assert.ok(deltas.length > 0 && deltas.every((delta) => Number.isInteger(delta.index)));
  assert.equal(chunks.at(-1).choices[0].finish_reason, 'tool_calls');
});

test('Continue: autocomplete with stop strings, raw prompt', async () => {
  const body = { model, prompt: 'def add(a, b):\n', max_tokens: 8, temperature: 0, stop: ['\n\n', '```'], stream: true };
  const list = await events(await post('/v1/completions', body));
  assert.equal(list.at(-1).data, '[DONE]');
  assert.ok(list.slice(0, -1).every(({ data }) => JSON.parse(data).object === 'text_completion'));
});

const claude = { model, max_tokens: 8, messages: question };
const claudeHeaders = { 'x-api-key': key, 'anthropic-version': '2023-06-01', 'anthropic-beta': 'claude-code-20250219', authorization: '' };
const billed = (nonce) => [{ type: 'text', text: `x-anthropic-billing-header: cc_version=2.1.36; cch=${nonce};` }, { type: 'text', text: 'You are a careful engineer. '.repeat(20), cache_control: { type: 'ephemeral' } }];

test('Claude Code: key in x-api-key, beta in the query, unknown beta fields', async () => {
  const response = await post('/v1/messages?beta=true', { ...claude, metadata: { user_id: 'u' }, context_management: { edits: [] }, output_config: { effort: 'low' } }, claudeHeaders);
  assert.equal((await accepted(response)).type, 'message');
});

test('Claude Code: a random billing line does not spoil the prompt', async () => {
  const ask = async (nonce) => accepted(await post('/v1/messages', { ...claude, system: billed(nonce) }, claudeHeaders));
  const total = ({ usage }) => usage.input_tokens + usage.cache_read_input_tokens + (usage.cache_creation_input_tokens ?? 0);
  const [first, second] = [await ask('1a2b3c4d5e6f'), await ask('f')];
  assert.equal(total(first), total(second));
  assert.ok(second.usage.cache_read_input_tokens > 0, 'the second prompt is remembered');
});

test('wrapped Claude clients: system inside messages, thinking blocks in the history', async () => {
  const messages = [{ role: 'system', content: 'Be brief.' }, ...question, { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.', signature: 's' }, { type: 'text', text: 'Yes.' }] }, ...question];
  await accepted(await post('/v1/messages', { ...claude, messages }, claudeHeaders));
});

test('Claude: every event has its name', async () => {
  const list = await events(await post('/v1/messages', { ...claude, stream: true }, claudeHeaders));
  assert.ok(list.length > 4 && list.every(({ event, data }) => event === JSON.parse(data).type));
});

test('llama.cpp users: health, props, tokens and back', async () => {
  assert.equal((await fetch(`${url}/health`)).status, 200);
  assert.equal((await get('/props')).status, 200);
  assert.equal((await get('/version')).status, 200);
  const { tokens } = await accepted(await post('/tokenize', { content: 'Hello, wörld!' }));
  assert.ok(tokens.length > 1 && tokens.every(Number.isInteger));
  assert.equal((await accepted(await post('/detokenize', { tokens }))).content, 'Hello, wörld!');
});

test('Prometheus: the names that dashboards know', async () => {
  const text = await (await get('/metrics')).text();
  for (const name of ['vllm:num_requests_running', 'vllm:num_requests_waiting', 'vllm:prompt_tokens_total', 'vllm:generation_tokens_total']) assert.ok(text.includes(name), name);
});

test('errors are always objects', async () => {
  await refused(await post('/v1/chat/completions', '{"model":'), 400);
  await refused(await post('/v1/chat/completions', '[]'), 400);
  await refused(await post('/v1/no/such/route', {}), 404, 'not_found_error');
  await refused(await get('/v1/models', { authorization: 'Bearer wrong' }), 401, 'authentication_error');
  await refused(await get('/v1/models', {}), 401, 'authentication_error');
  assert.equal((await refused(await chat({ max_tokens: -5 }), 400)).param, 'max_tokens');
  assert.equal((await refused(await chat({ top_p: 7 }), 400)).param, 'top_p');
  const unsupported = await refused(await chat({ response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object', not: { type: 'string' } } } } }), 400);
  assert.match(unsupported.message, /not/);
});
