// Bar: a hundred thousand bad requests, connections that never finish theirs, and more of both: no
// crash, no leak, right statuses, while somebody else is served. Meant for a build with sanitizers.
// usage: node bad_input.mjs BINARY [--requests 100000] [--connections 32] [--seed 1]
import { kKinds, someKind } from './bad_requests.mjs';
import { inParallel, options, Random, Server, sleep, spread, Verdict } from './server.mjs';
import { post, Wire } from './wire.mjs';

const chosen = options({ requests: 100_000, connections: 32, seed: 1 });
const verdict = new Verdict();
// A short context, so that a changed limit cannot ask for much.
const server = await Server.start(chosen.binary, ['-c', '1024', '--max-users', '16', '--shutdown-seconds', '5']);

const tally = new Map(kKinds.map((kind) => [kind.name, {}]));
const wrong = [];
function note(kind, bytes, outcome) {
  const counts = tally.get(kind.name);
  counts[outcome] = (counts[outcome] ?? 0) + 1;
  const unanswered = outcome === 'left' ? kind.mayWait : outcome === 'hung up' && kind.mayHangUp;
  if (kind.right.includes(outcome) || unanswered) return;
  wrong.push(`${kind.name}: ${outcome} for ${JSON.stringify(bytes.toString('latin1').slice(0, 700))}`);
}

// Somebody else asks the same question again and again.
const question = post('/v1/chat/completions', { messages: [{ role: 'user', content: 'Name a river.' }], temperature: 0, max_tokens: 8 });
const probe = { times: [], answers: new Set() };
let running = true;
async function probing() {
  const wire = await Wire.open(server.port);
  while (running) {
    const before = performance.now();
    wire.write(question);
    const reply = await wire.reply();
    const message = reply?.status === 200 ? JSON.parse(reply.body).choices[0].message : reply;
    probe.answers.add(JSON.stringify(message));
    probe.times.push(performance.now() - before);
    if (!reply) return;
    await sleep(200);
  }
  wire.cut();
}

// Connections that send a byte now and then and never come to an end. The server has to end them.
const loris = { opened: 0, ended: 0, statuses: {} };
async function dawdling(i) {
  const bytes = i % 2 ? Buffer.from(`GET /health HTTP/1.1\r\nHost: localhost\r\nX: ${'a'.repeat(500)}`) : question.subarray(0, question.length - 1);
  while (running) {
    const wire = await Wire.open(server.port);
    ++loris.opened;
    for (let at = 0; running && !wire.closed && at < bytes.length; ++at) {
      wire.write(bytes.subarray(at, at + 1));
      const reply = await wire.reply(400);
      if (!reply) continue;
      loris.statuses[reply.status] = (loris.statuses[reply.status] ?? 0) + 1;
      break;
    }
    ++loris.ended;
    wire.cut();
  }
}

const wires = [];
async function one(random, worker) {
  if (!wires[worker] || wires[worker].closed) wires[worker] = await Wire.open(server.port);
  const wire = wires[worker];
  const kind = someKind(random);
  const bytes = kind.make(random);
  wire.write(bytes);
  // Changed limits may ask for long answers, and changed lengths for more bytes: nobody waits.
  const reply = await wire.reply(kind.mayWait ?? 30_000);
  note(kind, bytes, reply ? reply.status : reply === null ? 'hung up' : 'left');
  if (!kind.lone && reply && reply.headers.connection !== 'close') return;
  wire.cut();
  wires[worker] = null;
}

const prober = probing();
const dawdlers = Array.from({ length: 20 }, (_, i) => dawdling(i));
const random = new Random(chosen.seed);
let done = 0;
const started = performance.now();
await inParallel(chosen.requests, chosen.connections, async (_, worker) => {
  if (server.exit) return;
  await one(random, worker);
  if (++done % 10_000 === 0) console.log(`${done} requests in ${((performance.now() - started) / 1000).toFixed(0)} s, ${server.memory().toFixed(0)} MiB, ${wrong.length} wrong`);
});
running = false;
await prober;
await Promise.all(dawdlers);
for (const wire of wires) wire?.cut();

for (const [name, counts] of tally) console.log(`  ${name}: ${JSON.stringify(counts)}`);
for (const line of wrong.slice(0, 40)) console.log(`  wrong: ${line}`);
verdict.check('requests answered by a living server', done === chosen.requests && !server.exit, done);
verdict.check('wrong statuses', wrong.length === 0, wrong.length);
const times = spread(probe.times);
verdict.check('answers to somebody else meanwhile', probe.answers.size === 1, `${probe.times.length}, ${probe.answers.size} different; ${times.p50.toFixed(0)} ms median, ${times.max.toFixed(0)} ms longest`);
verdict.check('slow connections', Object.keys(loris.statuses).every((status) => status === '408'), JSON.stringify(loris));
if (!server.exit) {
  const figures = await server.allFree(20_000);
  verdict.check('pages and sequences free at the end', figures !== null, figures !== null);
  verdict.check('5xx by the server\'s own count', server.errors(figures) === 0, server.errors(figures));
}
const { code, signal } = await server.stop();
verdict.check('exit status after SIGTERM', code === 0, `${code} ${signal ?? ''}`);
verdict.check('reports of sanitizers', server.problems === '', server.problems || 'none');
verdict.end();
