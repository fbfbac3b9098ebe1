// The server under test, and ready-made clients for it. run.mjs says where it is.
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

export const url = process.env.SLIPSTREAM_URL;
export const key = process.env.SLIPSTREAM_KEY;
if (!url || !key) throw new Error('start the tests with run.mjs');

const noRetries = { maxRetries: 0, timeout: 60_000 };
export const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, ...noRetries });
export const anthropic = new Anthropic({ baseURL: url, apiKey: key, ...noRetries });
export const strangers = {
  openai: new OpenAI({ baseURL: `${url}/v1`, apiKey: 'wrong', ...noRetries }),
  anthropic: new Anthropic({ baseURL: url, apiKey: 'wrong', ...noRetries }),
};

export const card = (await openai.models.list()).data[0];
export const model = card.id;
export const context = card.max_model_len;

// Greedy and without thinking: short answers that are the same every time.
export const steady = { model, temperature: 0, max_tokens: 48, chat_template_kwargs: { enable_thinking: false } };
export const say = (content) => [{ role: 'user', content }];
export const question = say('Write one sentence about the sea.');

export function post(path, body, headers = {}) {
  return fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}
export const get = (path, headers = { authorization: `Bearer ${key}` }) => fetch(url + path, { headers });

// The events of a stream as they stand on the wire: [{event, data}].
export async function events(response) {
  const text = await response.text();
  return text.split('\n\n').filter((block) => block && !block.startsWith(':')).map((block) => {
    const lines = block.split('\n');
    const field = (name) => lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2)).join('\n');
    return { event: field('event') || null, data: field('data') };
  });
}

export const collect = async (stream) => {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
};

// Answers in the making, as the server counts them.
export async function running() {
  const text = await (await get('/metrics')).text();
  return Number(/^vllm:num_requests_running(?:\{.*\})? (\S+)$/m.exec(text)[1]);
}

export async function idleWithin(ms) {
  const end = Date.now() + ms;
  while ((await running()) > 0) {
    if (Date.now() > end) return false;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return true;
}

// A tool whose arguments are few, so that even a small model's call ends soon.
export const weather = {
  name: 'get_weather',
  description: 'The weather in a city',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string', enum: ['Oslo', 'Rome'] }, days: { type: 'integer', minimum: 1, maximum: 9 } },
    required: ['city', 'days'],
    additionalProperties: false,
  },
};

export function isWeather(value) {
  return ['Oslo', 'Rome'].includes(value.city) && Number.isInteger(value.days) && value.days >= 1 && value.days <= 9 && Object.keys(value).length === 2;
}
