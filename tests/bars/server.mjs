// `slipstream serve` as a child: started on a free port, asked for its figures, stopped.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Server {
  static async start(binary, flags = [], port = 0) {
    const server = new Server();
    server.child = spawn(binary, ['serve', '--port', String(port), ...flags], { stdio: ['ignore', 'ignore', 'pipe'] });
    server.ended = new Promise((resolve) => server.child.on('exit', (code, signal) => resolve({ code, signal })));
    server.ended.then((how) => (server.exit = how));
    server.child.stderr.on('data', (bytes) => server.#hear(String(bytes)));
    while (!(server.port = server.#portInLog())) {
      if (server.exit) throw new Error(`the server ended at once:\n${server.log}`);
      await sleep(20);
    }
    server.url = `http://127.0.0.1:${server.port}`;
    while (!(await fetch(`${server.url}/health`)).ok) await sleep(50); // 503 while it loads
    server.errorsAtStart = (await server.figures())['http_requests_total.5xx'];
    return server;
  }

  log = ''; // its end
  problems = ''; // what sanitizers wrote

  #hear(text) {
    this.log = (this.log + text).slice(-20_000);
    if (this.problems || /Sanitizer|runtime error/.test(text)) this.problems = (this.problems + text).slice(0, 50_000);
  }

  #portInLog() {
    return Number(/http:\/\/[0-9.]+:(\d+)/.exec(this.log)?.[1] ?? 0);
  }

  // The figures of /metrics without labels, by their names without "vllm:" and "slipstream:".
  async figures() {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    const figures = {};
    for (const [, name, labels, value] of text.matchAll(/^(?:vllm|slipstream):(\w+)(?:\{(.*)\})? (\S+)$/gm)) {
      const label = /(?:status|finished_reason)="(\w+)"/.exec(labels ?? '')?.[1];
      figures[label ? `${name}.${label}` : name] = Number(value);
    }
    return figures;
  }

  static isFree(figures) {
    return figures.num_requests_running + figures.num_requests_waiting + figures.sequences_in_use + figures.kv_cache_usage_perc === 0;
  }

  // Replies with 5xx since the model was loaded.
  errors(figures) {
    return figures ? figures['http_requests_total.5xx'] - this.errorsAtStart : NaN;
  }

  // Waits until nothing is in use; the figures then, or null after `ms`.
  async allFree(ms) {
    for (const end = Date.now() + ms; Date.now() < end; await sleep(5)) {
      const figures = await this.figures();
      if (Server.isFree(figures)) return figures;
    }
    return null;
  }

  // Resident memory in MiB.
  memory() {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.child.pid}/status`, 'utf8'))[1]) / 1024;
  }

  async stop(signal = 'SIGTERM') {
    this.child.kill(signal);
    return this.ended;
  }
}

// How a bar's script ends: every line says what was found, and the status whether all held.
export class Verdict {
  #short = 0;

  check(what, holds, found) {
    console.log(`${holds ? 'met  ' : 'SHORT'} ${what}: ${found}`);
    if (!holds) ++this.#short;
  }

  end() {
    process.exit(this.#short ? 1 : 0);
  }
}

// Random numbers that a seed repeats (xorshift32).
export class Random {
  constructor(seed) {
    this.state = (seed * 2654435761 + 1) >>> 0 || 1;
    for (let i = 0; i < 8; ++i) this.next();
  }
  next() {
    let x = this.state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (this.state = x >>> 0) / 4294967296;
  }
  below(n) { return Math.floor(this.next() * n); }
  between(low, high) { return low + this.below(high - low + 1); }
  chance(share) { return this.next() < share; }
  of(list) { return list[this.below(list.length)]; }
}

// `--name value` and `--name=value`; the first word is the program.
export function options(defaults) {
  const [binary, ...rest] = process.argv.slice(2);
  const found = { ...defaults };
  for (let i = 0; i < rest.length; ++i) {
    const [name, value = rest[++i]] = rest[i].replace(/^--/, '').split('=');
    if (!(name in defaults)) throw new Error(`there is no option --${name}; there are ${Object.keys(defaults).join(', ')}`);
    found[name] = typeof defaults[name] === 'number' ? Number(value) : value;
  }
  if (!binary) throw new Error('usage: node SCRIPT.mjs BINARY [--option value]...');
  return { binary, ...found };
}

// `tasks` numbered from 0, `width` at a time; or as long as tasks(next) holds.
export async function inParallel(tasks, width, run) {
  const isMore = typeof tasks === 'function' ? tasks : (next) => next < tasks;
  let next = 0;
  await Promise.all(Array.from({ length: width }, async (_, worker) => {
    while (isMore(next)) await run(next++, worker);
  }));
}

export function spread(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return { p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 };
}
