// One connection as bytes, so that nothing is too malformed to be sent and every moment can be the
// one at which it is cut.
import net from 'node:net';

export class Wire {
  static open(port) {
    const wire = new Wire();
    wire.socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
    wire.socket.on('data', (bytes) => wire.#heard(bytes));
    wire.socket.on('close', () => wire.#over());
    wire.socket.on('error', () => {}); // a close follows
    return new Promise((resolve) => {
      wire.socket.once('connect', () => resolve(wire));
      wire.socket.once('close', () => resolve(wire));
    });
  }

  #bytes = Buffer.alloc(0);
  #waiting = null;
  closed = false;

  write(bytes) {
    if (!this.closed) this.socket.write(bytes);
  }

  cut() {
    this.socket.destroy();
    this.closed = true;
  }

  // The next reply as {status, headers, body}; null if the server hung up before its end;
  // undefined if it has not come within `ms`.
  reply(ms = 60_000) {
    return this.#until(ms, () => {
      const parsed = parseReply(this.#bytes, this.closed);
      if (parsed) this.#bytes = this.#bytes.subarray(parsed.length);
      return parsed;
    });
  }

  // Waits for `count` events of a stream; their number so far if it ends earlier.
  async events(count, ms = 60_000) {
    const seen = () => this.#bytes.toString('latin1').split('data: {').length - 1;
    await this.#until(ms, () => (seen() >= count ? true : null));
    return seen();
  }

  #until(ms, find) {
    return new Promise((resolve) => {
      const finish = (value) => {
        clearTimeout(timer);
        this.#waiting = null;
        resolve(value);
      };
      const look = () => {
        const found = find();
        if (found || this.closed) finish(found ?? null);
      };
      const timer = setTimeout(() => finish(undefined), ms);
      this.#waiting = look;
      look();
    });
  }

  #heard(bytes) {
    this.#bytes = this.#bytes.length ? Buffer.concat([this.#bytes, bytes]) : bytes;
    this.#waiting?.();
  }

  #over() {
    this.closed = true;
    this.#waiting?.();
  }
}

// The first reply in `bytes` that is no "100 Continue", with its length; null: more must come.
function parseReply(bytes, ended) {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const [line, ...fields] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const status = Number(/^HTTP\/1\.[01] (\d{3}) /.exec(line)?.[1] ?? NaN);
  const start = headEnd + 4;
  if (status === 100) {
    const next = parseReply(bytes.subarray(start), ended);
    return next && { ...next, length: next.length + start };
  }
  const headers = Object.fromEntries(fields.map((field) => [field.slice(0, field.indexOf(':')).toLowerCase(), field.slice(field.indexOf(':') + 1).trim()]));
  if (headers['transfer-encoding'] === 'chunked') {
    let at = start;
    const pieces = [];
    for (;;) {
      const lineEnd = bytes.indexOf('\r\n', at);
      if (lineEnd < 0) return null;
      const size = parseInt(bytes.toString('latin1', at, lineEnd), 16);
      if (bytes.length < lineEnd + 2 + size + 2) return null;
      pieces.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
      at = lineEnd + 2 + size + 2;
      if (size === 0) return { status, headers, body: Buffer.concat(pieces).toString(), length: at };
    }
  }
  if ('content-length' in headers) {
    const end = start + Number(headers['content-length']);
    return bytes.length < end ? null : { status, headers, body: bytes.toString('utf8', start, end), length: end };
  }
  if (status === 204) return { status, headers, body: '', length: start };
  return ended ? { status, headers, body: bytes.toString('utf8', start), length: bytes.length } : null;
}

export function post(path, body, fields = '') {
  const bytes = Buffer.from(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body));
  return Buffer.concat([
    Buffer.from(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${bytes.length}\r\n${fields}\r\n`, 'latin1'),
    bytes,
  ]);
}
