// Bar: a client that is killed at any point has its memory freed within one step, and a killed
// server leaves nothing that stops the next one.
// usage: node leaving.mjs BINARY [--times 60] [--seed 1]
import { options, Random, Server, sleep, spread, Verdict } from './server.mjs';
import { post, Wire } from './wire.mjs';

const chosen = options({ times: 60, seed: 1 });
const random = new Random(chosen.seed);
const verdict = new Verdict();
const kFigures = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n';
const kSteps = /^slipstream:steps_total\{.*\} (\S+)$/m;

let salt = 0;
// Never seen before, so that its prompt has to be computed.
const story = (words) => `Story ${++salt}. ${'the old cat walked over a small bridge and saw birds near the river '.repeat(Math.ceil(words / 14))}`;
const ask = (words, fields) => post('/v1/chat/completions', { messages: [{ role: 'user', content: story(words) }], ignore_eos: true, max_tokens: 1500, ...fields });

// When each client is cut. Returns once that moment has come.
const stages = {
  'within the head': async (wire) => {
    const bytes = ask(10);
    wire.write(bytes.subarray(0, random.below(60)));
    await sleep(random.below(5));
  },
  'within the body': async (wire) => {
    const bytes = ask(100);
    wire.write(bytes.subarray(0, random.between(150, bytes.length - 1)));
    await sleep(random.below(5));
  },
  'as soon as it has asked': async (wire) => wire.write(ask(50)),
  'during its prompt': async (wire) => {
    wire.write(ask(2000, { stream: true }));
    await sleep(random.between(5, 120));
  },
  'while it waits for the whole answer': async (wire) => {
    wire.write(ask(20));
    await sleep(random.between(30, 300));
  },
  'within the stream': async (wire) => {
    wire.write(ask(20, { stream: true }));
    await wire.events(random.between(1, 60));
  },
  'within a stream of three answers': async (wire) => {
    wire.write(ask(20, { stream: true, n: 3 }));
    await wire.events(random.between(1, 60));
  },
};

const server = await Server.start(chosen.binary, ['--max-users', '4']);
for (const [name, until] of Object.entries(stages)) {
  const steps = [];
  const times = [];
  let stuck = 0;
  for (let i = 0; i < chosen.times; ++i) {
    const watcher = await Wire.open(server.port);
    const wire = await Wire.open(server.port);
    await until(wire);
    wire.cut();
    const cut = performance.now();
    watcher.write(kFigures); // arrives right behind the cut, and is answered at once
    const atCut = Number(kSteps.exec((await watcher.reply()).body)[1]);
    watcher.cut();
    const figures = await server.allFree(5000);
    if (!figures) ++stuck;
    // Nobody else is there: steps end with this client.
    steps.push((figures?.steps_total ?? Infinity) - atCut);
    times.push(performance.now() - cut);
  }
  const [s, t] = [spread(steps), spread(times)];
  // The figures are read between two steps or during one, so the step under way may count as a second.
  verdict.check(`cut ${name}`, stuck === 0 && s.p50 <= 1 && s.max <= 2, `${chosen.times} times, steps computed afterwards ${s.p50} median, ${s.max} most; all free seen after ${t.p50.toFixed(0)} ms median, ${t.max.toFixed(0)} ms most`);
}

{ // In the queue: four answers are being made, others wait.
  const busy = [];
  for (let i = 0; i < 4; ++i) {
    const wire = await Wire.open(server.port);
    wire.write(ask(10, { stream: true, max_tokens: 3500 }));
    await wire.events(1);
    busy.push(wire);
  }
  let seen = 0;
  const times = [];
  for (let i = 0; i < 10; ++i) {
    const waiting = await Promise.all(Array.from({ length: 8 }, () => Wire.open(server.port)));
    for (const wire of waiting) wire.write(ask(300));
    await sleep(random.between(20, 60));
    seen = Math.max(seen, (await server.figures()).num_requests_waiting);
    for (const wire of waiting) wire.cut();
    const cut = performance.now();
    while ((await server.figures()).num_requests_waiting > 0 && performance.now() < cut + 5000);
    times.push(performance.now() - cut);
  }
  for (const wire of busy) wire.cut();
  const figures = await server.allFree(5000);
  verdict.check('cut in the queue', seen > 0 && spread(times).max < 5000 && figures !== null, `up to ${seen} waited; none seen after ${spread(times).p50.toFixed(0)} ms median, ${spread(times).max.toFixed(0)} ms most`);
}
await server.stop();

// A killed server: the next one starts at once, on the same port.
let starts = 0;
let port = 0;
for (let i = 0; i < 6; ++i) {
  const mortal = await Server.start(chosen.binary, ['--max-users', '4'], port);
  port = mortal.port;
  const wires = await Promise.all(Array.from({ length: 8 }, () => Wire.open(mortal.port)));
  wires[0].write(ask(200, { stream: true }));
  for (const wire of wires.slice(1)) wire.write(ask(200, { stream: random.chance(0.5) }));
  if (await wires[0].events(1)) ++starts;
  await sleep(random.below(200));
  await mortal.stop('SIGKILL');
}
verdict.check('starts after SIGKILL under load, on the same port', starts === 6, `${starts} of 6`);
verdict.end();
