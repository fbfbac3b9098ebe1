// What all routes of the stand-in server share.
import { randomBytes } from 'node:crypto';

export const newId = (prefix) => prefix + randomBytes(12).toString('hex');
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Refusal extends Error {
  constructor(status, type, message, more = {}) {
    super(message);
    Object.assign(this, { status, type, more });
  }
}
export const badRequest = (message, param = null, code = null) => new Refusal(400, 'invalid_request_error', message, { param, code });

export function sendJson(response, status, body, headers = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

export async function readJson(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  try {
    return JSON.parse(Buffer.concat(pieces).toString('utf8'));
  } catch (error) {
    throw badRequest(`The body is not JSON: ${error.message}`);
  }
}

// Server-sent events. `gone` turns true when the client has hung up.
export class EventStream {
  constructor(response) {
    this.response = response;
    this.gone = false;
    response.on('close', () => (this.gone = true));
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.flushHeaders();
    response.write(': ping\n\n');
  }
  data(value) {
    this.response.write(`data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`);
  }
  named(name, value) {
    this.response.write(`event: ${name}\ndata: ${JSON.stringify(value)}\n\n`);
  }
  end() {
    this.response.end();
  }
}
