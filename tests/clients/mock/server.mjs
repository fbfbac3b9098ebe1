// A stand-in for `slipstream serve`, for work on the chat page and to try the client tests
// themselves. usage: node server.mjs [--port N] [--page FILE] [--key KEY] [--load SECONDS]
//                                    [--delay MS] [--unwell MESSAGE] [--flaw NAME]
// It makes at most 24 answers at once. --flaw breaks one rule on purpose; the tests must then fail (see ../selfcheck.mjs).
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { chat } from './chat.mjs';
import { completions } from './completions.mjs';
import { context, model } from './generate.mjs';
import { badRequest, newId, pause, readJson, Refusal, sendJson } from './http.mjs';
import { countMessageTokens, messages } from './messages.mjs';
import { responses } from './responses.mjs';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '8080' }, page: { type: 'string' }, key: { type: 'string' },
    load: { type: 'string', default: '0' }, delay: { type: 'string', default: '3' }, unwell: { type: 'string' }, flaw: { type: 'string' },
  },
});
const options = { delay: Number(values.delay), flaw: values.flaw };
const started = Date.now();
const progress = () => Math.min(1, (Date.now() - started) / 1000 / Math.max(Number(values.load), 1e-9));
const card = { id: model, object: 'model', created: Math.floor(started / 1000), owned_by: 'slipstream', max_model_len: context, meta: { n_ctx: context } };

const post = {
  '/v1/chat/completions': chat, '/v1/completions': completions, '/v1/responses': responses, '/v1/messages': messages, '/v1/messages/count_tokens': countMessageTokens,
  '/tokenize': ({ content }, response) => sendJson(response, 200, { tokens: [...content].map((character) => character.codePointAt(0)) }),
  '/detokenize': ({ tokens }, response) => sendJson(response, 200, { content: String.fromCodePoint(...tokens) }),
};
const metrics = ['num_requests_waiting', 'prompt_tokens_total', 'generation_tokens_total'];
const get = {
  '/': (response) => {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
    response.end(readFileSync(values.page));
  },
  '/health': (response) => {
    if (values.unwell) return sendJson(response, 503, { status: 'failing', error: { message: values.unwell } });
    return progress() < 1 ? sendJson(response, 503, { status: 'loading', progress: progress() }) : sendJson(response, 200, { status: 'ok' });
  },
  '/props': (response) => sendJson(response, 200, { default_generation_settings: { n_ctx: context, params: { temperature: 0.7, top_p: 0.8, top_k: 20 } } }),
  '/version': (response) => sendJson(response, 200, { version: '0' }),
  '/metrics': (response) => response.end(`vllm:num_requests_running ${busy}\n${metrics.map((name) => `vllm:${name} 0\n`).join('')}`),
  '/v1/models': (response) => sendJson(response, 200, { object: 'list', data: [card] }),
  [`/v1/models/${model}`]: (response) => sendJson(response, 200, card),
};

function checkKey(request, path) {
  if (!values.key || path === '/health' || path === '/') return;
  const given = request.headers.authorization?.replace(/^Bearer /, '') || request.headers['x-api-key'];
  if (given !== values.key) throw new Refusal(options.flaw === 'key-403' ? 403 : 401, 'authentication_error', 'Give an API key of this server.', { code: 'invalid_api_key' });
}

const room = 24;
let busy = 0;

async function answer(request, response) {
  const path = new URL(request.url, 'http://mock').pathname;
  checkKey(request, path);
  if (request.method === 'GET' && get[path]) return get[path](response);
  if (request.method !== 'POST' || !post[path]) throw new Refusal(404, 'not_found_error', `There is no ${request.method} ${path} here.`);
  const body = await readJson(request);
  if (Array.isArray(body) || body === null) throw badRequest('The body must be a JSON object.');
  if (progress() < 1) throw new Refusal(503, 'unavailable_error', 'The model is still loading.', { code: 'loading' });
  if (busy >= room) throw new Refusal(options.flaw === 'busy-503' ? 503 : 429, 'rate_limit_error', 'Too many requests wait already.');
  busy += 1;
  try {
    if (body.ignore_eos) await pause(100); // an answer in one piece takes its time, too
    await post[path](body, response, options);
  } finally {
    busy -= 1;
  }
}

function refuse(error, request, response) {
  const { status = 500, type = 'server_error', message, more = {} } = error;
  const anthropic = request.url.startsWith('/v1/messages');
  const openai = { message, type, param: null, code: null, ...more };
  if (options.flaw === 'no-error-code') openai.code = null;
  if (!(error instanceof Refusal)) console.error(error);
  if (response.headersSent) return response.end();
  sendJson(response, status, anthropic ? { type: 'error', error: { type, message }, request_id: newId('req_') } : { error: openai }, status === 503 || status === 429 ? { 'retry-after': '1' } : {});
}

const server = createServer((request, response) => {
  response.setHeader('x-request-id', newId('req_'));
  answer(request, response).catch((error) => refuse(error, request, response));
});
server.listen(Number(values.port), '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
