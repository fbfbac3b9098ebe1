// Requests that are wrong on purpose. Each kind says what a right server may answer.
import { post } from './wire.mjs';

const kBodies = {
  '/v1/chat/completions': { messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Hello, Ålesund!' }], max_tokens: 1, temperature: 0.5, seed: 3, stop: ['END'], logit_bias: { 5: -1 } },
  '/v1/completions': { prompt: 'Once upon', max_tokens: 1, top_k: 5, logprobs: 1 },
  '/v1/responses': { input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }], max_output_tokens: 1 },
  '/v1/messages': { model: 'minnow', max_tokens: 1, messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }], tools: [{ name: 'f', input_schema: { type: 'object', properties: { a: { type: 'integer' } } } }] },
  '/v1/messages/count_tokens': { model: 'minnow', messages: [{ role: 'user', content: 'Hi' }] },
  '/tokenize': { content: 'a few words', with_pieces: true },
  '/detokenize': { tokens: [1, 2, 3] },
  schema: { messages: [{ role: 'user', content: 'x' }], max_tokens: 1, response_format: { type: 'json_schema', json_schema: { name: 's', strict: true, schema: { type: 'object', properties: { a: { type: 'string', pattern: '^a{1,3}$' }, b: { enum: [1, 'x'] } }, required: ['a'], additionalProperties: false } } } },
  tools: { messages: [{ role: 'user', content: 'x' }, { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }] }, { role: 'tool', tool_call_id: 'c', content: '2' }], max_tokens: 1, tool_choice: 'required', tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] } } }] },
  regex: { messages: [{ role: 'user', content: 'x' }], max_tokens: 1, structured_outputs: { regex: '(a|b){1,9}[^c]\\d' } },
  grammar: { messages: [{ role: 'user', content: 'x' }], max_tokens: 1, guided_grammar: 'root ::= "a" | b*\nb ::= [0-9]{1,3}' },
};
const kPaths = Object.keys(kBodies);
const pathOf = (kind) => (kind.startsWith('/') ? kind : '/v1/chat/completions');

const kOddities = [null, true, false, 0, -1, 1, 2, 0.5, -0.0, 1e308, -1e308, 1e-320, 2 ** 31, 2 ** 53, -(2 ** 63), 2 ** 64, '', 'x', '\u0000', '\ud83d\ude00', '\ufffe', '<|im_end|>', '</think>', '<tool_call>', '{{ x }}', '{% for i in range(9) %}', '(', '(a*)*', '[z-a]', 'a{9999}', '\\p{L}', '#/$defs/x', [], {}, [[]], [null], { a: null }, ['x', 1], { type: 'object' }, { $ref: '#' }, { type: 'string', pattern: '(' }, { anyOf: [] }, [{ role: 'user', content: 'x' }], 'x'.repeat(3000)];
const kKeys = ['n', 'stream', 'tools', 'tool_choice', 'messages', 'prompt', 'input', 'response_format', 'logprobs', 'top_logprobs', 'echo', 'suffix', 'system', 'thinking', 'reasoning', 'reasoning_effort', 'max_tokens', 'min_tokens', 'stop', 'stop_token_ids', 'logit_bias', 'seed', 'role', 'content', 'type', '$ref', 'pattern', 'minLength', 'maxItems', 'minimum', 'enum', 'const', 'allOf', 'chat_template_kwargs', 'structured_outputs', 'cache_salt', 'metadata', 'parallel_tool_calls', 'continue_final_message', 'stream_options', 'speculative.n_max'];

// A random place within `value`: the thing that holds it, and its key.
function place(random, value) {
  let holder = { root: value };
  let key = 'root';
  while (holder[key] && typeof holder[key] === 'object' && Object.keys(holder[key]).length && random.chance(0.75)) {
    holder = holder[key];
    key = random.of(Object.keys(holder));
  }
  return [holder, key];
}

function mutatedJson(random) {
  const kind = random.of(kPaths);
  const body = structuredClone(kBodies[kind]);
  for (let i = random.between(1, 3); i > 0; --i) {
    const [holder, key] = place(random, body);
    switch (random.below(4)) {
      case 0: Array.isArray(holder) ? holder.splice(key, 1) : delete holder[key]; break;
      case 1: holder[random.of(kKeys)] = structuredClone(random.of(kOddities)); break;
      default: if (holder[key] !== body) holder[key] = structuredClone(random.of(kOddities));
    }
  }
  return post(pathOf(kind), JSON.stringify(body));
}

function mutateBytes(random, bytes, count) {
  let mutated = Buffer.from(bytes);
  for (let i = 0; i < count; ++i) {
    const at = random.below(mutated.length);
    switch (random.below(5)) {
      case 0: mutated[at] = random.below(256); break;
      case 1: mutated[at] ^= 1 << random.below(8); break;
      case 2: mutated = Buffer.concat([mutated.subarray(0, at), mutated.subarray(at + random.between(1, 9))]); break;
      case 3: mutated = Buffer.concat([mutated.subarray(0, at), mutated.subarray(Math.max(0, at - random.between(1, 20)))]); break;
      default: mutated = Buffer.concat([mutated.subarray(0, at), Buffer.from(random.of(['{', '[', '"', '\\', '\r\n', '\0', ':', ',', '\xff', '9', ' '].map(String)), 'latin1'), mutated.subarray(at)]);
    }
    if (mutated.length === 0) mutated = Buffer.from('x');
  }
  return mutated;
}

const body = (kind) => Buffer.from(JSON.stringify(kBodies[kind]));

// What may be sent: how often, made how, and which statuses are right. `lone`: the connection is of
// no use afterwards. `mayWait`: after so many milliseconds without an answer it may be cut.
export const kKinds = [
  { name: 'fields changed', weight: 40, mayWait: 1500, make: mutatedJson, right: [200, 400, 404] },
  { name: 'bytes of the body changed', weight: 22, mayWait: 1500, right: [200, 400, 404],
    make: (random) => { const kind = random.of(kPaths); return post(pathOf(kind), mutateBytes(random, body(kind), random.between(1, 4))); } },
  { name: 'bad UTF-8', weight: 4, right: [400],
    make: (random) => post('/v1/completions', Buffer.concat([Buffer.from('{"max_tokens":1,"prompt":"'), Buffer.from(random.of([[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xe2, 0x82], [0x80], [0xf0, 0x8f, 0xbf, 0xbf]])), Buffer.from('"}')])) },
  { name: 'half surrogates', weight: 2, right: [200, 400], make: (random) => post('/v1/completions', `{"max_tokens":1,"prompt":"${random.of(['\\ud800', '\\udc00x', '\\ud83d\\ud83d', '\\u0000'])}"}`) },
  { name: 'deep JSON', weight: 2, right: [400],
    make: (random) => { const depth = random.of([200, 5000, 100_000]); const [open, close] = random.of([['[', ']'], ['{"a":', '}']]); return post('/v1/completions', `{"prompt":${open.repeat(depth)}1${random.chance(0.5) ? close.repeat(depth) : ''}}`); } },
  { name: 'deep schemas', weight: 2, right: [200, 400],
    make: (random) => { const depth = random.of([50, 150, 2000]); return post('/v1/chat/completions', `{"messages":[{"role":"user","content":"x"}],"max_tokens":1,"json_schema":${'{"type":"array","minItems":1,"items":'.repeat(depth)}{}${'}'.repeat(depth)}}`); } },
  { name: 'hard patterns', weight: 2, right: [200, 400],
    make: (random) => post('/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }], max_tokens: 1, structured_outputs: { regex: random.of(['(a+)+b', '(a|a)*c', '((a{1,100}){1,100}){1,100}', '[\\u0000-\\uffff]{1,5000}', '('.repeat(3000), '(x|'.repeat(500) + ')'.repeat(500), '.*'.repeat(200), '(?=a)b', '\\b\\1', '^$', '[', 'a{3,2}', '\\', '[^\\s\\S]']) } }) },
  { name: 'empty or no object', weight: 2, right: [400], make: (random) => post(pathOf(random.of(kPaths)), random.of(['', ' ', '[]', '1', 'null', '"x"', '{', '{}x', '\ufeff'])) },
  { name: 'wrong paths and methods', weight: 4, right: [404, 405],
    make: (random) => { const [method, path] = random.of([['GET', '/v1/chat/completions'], ['POST', '/nowhere'], ['DELETE', '/v1/models'], ['PUT', '/metrics'], ['GET', '/../../etc/passwd'], ['GET', '/%2e%2e/%00'], ['POST', '/v1/chat/completions/'], ['GET', `/${'a'.repeat(4000)}`], ['GET', '/v1/models/none']]); return Buffer.from(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`); } },
  { name: 'other hosts and origins', weight: 2, right: [403, 421],
    make: (random) => Buffer.from(`GET /v1/models HTTP/1.1\r\n${random.of(['Host: evil.example', 'Host: localhost\r\nOrigin: https://evil.example', 'Host: localhost.evil.example', 'Host: localhost\r\nOrigin: null'])}\r\n\r\n`) },
  { name: 'compressed bodies', weight: 1, lone: true, right: [415], make: () => post('/v1/completions', Buffer.from([31, 139, 8, 0]), 'Content-Encoding: gzip\r\n') },
  { name: 'lengths that disagree', weight: 3, lone: true, right: [400],
    make: (random) => Buffer.from(`POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n${random.of(['Content-Length: 5\r\nContent-Length: 6', 'Content-Length: 5\r\nTransfer-Encoding: chunked', 'Transfer-Encoding: gzip, chunked', 'Transfer-Encoding: chunked, chunked', 'Content-Length: -1', 'Content-Length: 5x', 'Content-Length: 99999999999999999999999', 'Content-Length: 0x10', 'Content-Length: 5,5', 'Transfer-Encoding:\tx'])}\r\n\r\n{"a":`, 'latin1') },
  { name: 'too long bodies', weight: 1, lone: true, right: [413],
    make: (random) => Buffer.from(random.chance(0.5) ? 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n{' : `POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n${'x'.repeat(2000)}`) },
  { name: 'too long heads', weight: 1, lone: true, right: [431], make: (random) => Buffer.from(`GET ${random.chance(0.5) ? `/${'a'.repeat(70_000)}` : `/health HTTP/1.1\r\nHost: localhost\r\nX: ${'b'.repeat(70_000)}`}\r\n`) },
  { name: 'bad chunks', weight: 2, lone: true, right: [400],
    make: (random) => Buffer.from(`POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n${random.of(['zz\r\n', '-1\r\n', '5\r\nhelloX\r\n0\r\n\r\n', 'ffffffffffffffffff\r\n', '\r\n\r\n', '1;\0\r\nx\r\n'])}`, 'latin1') },
  { name: 'no HTTP', weight: 2, lone: true, right: [400, 421],
    make: (random) => Buffer.from(random.of(['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'hello\r\n\r\n', 'GET\r\n\r\n', 'GET / HTTP/9.9\r\n\r\n', '\0\0\0\0\r\n\r\n', 'GET / HTTP/1.1\r\n\r\n', 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 'GET / HTTP/1.1\r\nHost : a\r\n\r\n', 'GET / HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n', 'GET http:// HTTP/1.1\r\nHost: localhost\r\n\r\n', 'GET / HTTP/1.1\nHost: localhost\n\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n']), 'latin1') },
  // Anything but an error of the server's own.
  { name: 'bytes of a request changed', weight: 8, lone: true, mayWait: 150, mayHangUp: true, right: [200, 204, 400, 403, 404, 405, 408, 413, 415, 421, 431],
    make: (random) => { const kind = random.of(kPaths); return mutateBytes(random, post(pathOf(kind), body(kind)), random.between(1, 6)); } },
];

const kTotal = kKinds.reduce((sum, kind) => sum + kind.weight, 0);

export function someKind(random) {
  let left = random.next() * kTotal;
  return kKinds.find((kind) => (left -= kind.weight) < 0) ?? kKinds[0];
}
