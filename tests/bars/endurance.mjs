// Bar: memory is flat over 20,000 requests, many of which are aborted, others are answered
// meanwhile, and everything is free at the end.
// usage: node endurance.mjs BINARY [--requests 20000 | --minutes 30] [--connections 32] [--seed 1] [--speculate auto]
import { inParallel, options, Random, Server, sleep, spread, Verdict } from './server.mjs';
import { post, Wire } from './wire.mjs';

const chosen = options({ requests: 20_000, minutes: 0, connections: 32, seed: 1, speculate: 'auto' });
const random = new Random(chosen.seed);
const verdict = new Verdict();
const server = await Server.start(chosen.binary, ['--speculate', chosen.speculate]);

const kWords = 'the old cat walked over a small bridge and saw two birds near river when rain began to fall'.split(' ');
const text = (words) => Array.from({ length: words }, () => random.of(kWords)).join(' ');

function someRequest() {
  const stream = random.chance(0.5);
  const limits = { max_tokens: random.between(1, 24), temperature: random.of([0, 1]), stream };
  const messages = [{ role: 'user', content: text(random.chance(0.05) ? random.between(200, 600) : random.between(3, 60)) }];
  switch (random.below(6)) {
    case 0: return post('/v1/completions', { prompt: text(random.between(1, 40)), ...limits });
    case 1: return post('/v1/messages', { messages, model: 'minnow', ...limits });
    case 2: return post('/v1/responses', { input: text(20), max_output_tokens: limits.max_tokens, stream });
    case 3: return post('/v1/chat/completions', { messages, ...limits, response_format: { type: 'json_object' } });
    case 4: return post('/v1/chat/completions', { messages, ...limits, n: 2, logprobs: true, top_logprobs: 3 });
    default: return post('/v1/chat/completions', { messages, ...limits });
  }
}

const counts = { answered: 0, aborted: 0, lost: 0 };
const statuses = {};
const memory = [];
let done = 0;

async function one(wires, worker) {
  wires[worker] ??= await Wire.open(server.port);
  const wire = wires[worker];
  const bytes = someRequest();
  const abort = random.chance(0.3);
  if (abort && random.chance(0.3)) {
    wire.write(bytes.subarray(0, random.below(bytes.length))); // cut within the request
    await sleep(random.below(3));
  } else {
    wire.write(bytes);
    const reply = abort ? await wire.reply(random.below(40)) : await wire.reply();
    if (reply) {
      statuses[reply.status] = (statuses[reply.status] ?? 0) + 1;
      ++counts.answered;
      if (reply.headers.connection === 'close') {
        wire.cut();
        wires[worker] = null;
      }
      return;
    }
    if (!abort) {
      ++counts.lost;
      console.log(`  ${reply === null ? 'hung up' : 'no answer within a minute'}: ${bytes.toString().slice(0, 800)}\n${server.log.slice(-600)}`);
    }
  }
  ++counts.aborted;
  wire.cut();
  wires[worker] = null;
}

// Somebody else, all the while: the same question must get the same answer, and soon.
const probe = { body: JSON.stringify({ messages: [{ role: 'user', content: 'Name a river.' }], temperature: 0, max_tokens: 8 }), times: [], answers: new Set() };
let running = true;
async function probing() {
  while (running) {
    const before = performance.now();
    const response = await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body: probe.body, headers: { 'content-type': 'application/json' } });
    const { choices } = await response.json();
    const { content, reasoning_content: thoughts } = choices[0].message;
    probe.answers.add(JSON.stringify([thoughts, content]));
    probe.times.push(performance.now() - before);
    await sleep(250);
  }
}

const prober = probing();
const wires = [];
const endTime = performance.now() + chosen.minutes * 60_000;
const isMore = (next) => (chosen.minutes > 0 ? performance.now() < endTime : next < chosen.requests);
await inParallel(isMore, chosen.connections, async (_, worker) => {
  await one(wires, worker);
  if (++done % 1000 === 0) {
    memory.push(server.memory());
    console.log(`${done} requests, ${memory.at(-1).toFixed(1)} MiB, ${JSON.stringify({ ...counts, ...statuses })}`);
  }
});
running = false;
await prober;
for (const wire of wires) wire?.cut();
const figures = await server.allFree(10_000);
// What a server keeps for good it takes early. Runs by the clock are as long as they are: from half
// on.
const end = server.memory();
if (memory.length === 0) memory.push(end);  // too short a run to compare
const [since, early] = chosen.minutes > 0 ? ['half', memory[memory.length >> 1]] : ['2,000', memory[1] ?? memory[0]];

verdict.check('requests', chosen.minutes > 0 || done === chosen.requests, `${done}, aborted ${counts.aborted}`);
verdict.check(`memory at the end against that after ${since}`, end < early * 1.02 + 2, `${end.toFixed(1)} MiB against ${early.toFixed(1)}`);
verdict.check('statuses', Object.keys(statuses).every((status) => status === '200'), JSON.stringify(statuses));
verdict.check('answers that did not come', counts.lost === 0, counts.lost);
verdict.check('pages and sequences free at the end', figures !== null, figures !== null);
verdict.check('5xx by the server\'s own count', server.errors(figures) === 0, server.errors(figures));
const times = spread(probe.times);
verdict.check('answers to somebody else meanwhile', probe.answers.size === 1, `${probe.times.length}, all the same; ${times.p50.toFixed(0)} ms median, ${times.max.toFixed(0)} ms longest`);
const { code } = await server.stop();
verdict.check('exit status after SIGTERM', code === 0, code);
verdict.end();
