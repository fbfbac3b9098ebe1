// Bar: a drafter that is often right (at least 80 % of its drafts) makes a Gemma 4 on the CPU at least
// 1.5 times as fast, and the text stays the same, token for token. Medians of five rounds.
// usage: node gemma_drafter.mjs BINARY WRITER   (WRITER: cmake --build DIR --target write_agreeing_gemma)
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

const [binary, writer] = process.argv.slice(2);
if (!writer) {
  console.error('usage: node gemma_drafter.mjs BINARY WRITER');
  process.exit(2);
}
const rounds = 5, tokens = 300;
const drafting = ['4', 'auto'];
const folder = mkdtempSync(join(tmpdir(), 'agreeing-gemma-'));
const model = join(folder, 'gemma');
const prompt = join(folder, 'prompt.json');

const answer = (speculate) =>
  JSON.parse(execFileSync(binary, ['run', '--model', model, '--ids', prompt, '--greedy', '--ignore-eos', '--json', '--device', 'cpu',
    '--max-tokens', String(tokens), '--speculate', speculate], { encoding: 'utf8' }));
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const rate = (answers) => median(answers.map(({ timings }) => timings.tokens_per_second));

let short = 0;
const report = (met, line) => {
  console.log(`${met ? 'met  ' : 'SHORT'} ${line}`);
  short += !met;
};

try {
  execFileSync(writer, [model]);
  writeFileSync(prompt, JSON.stringify(Array.from({ length: 64 }, (_, i) => (i * 2477 + 31) % 8192)));
  const plain = [], drafted = Object.fromEntries(drafting.map((name) => [name, []]));
  for (let round = 0; round < rounds; ++round) {
    plain.push(answer('off'));
    for (const name of drafting) drafted[name].push(answer(name));
  }
  const text = JSON.stringify(plain[0].token_ids);
  for (const [name, answers] of Object.entries(drafted)) {
    const same = answers.filter(({ token_ids }) => JSON.stringify(token_ids) === text).length;
    report(same === rounds, `--speculate ${name}: ${same} of ${rounds} texts are the one without drafts`);
    const share = median(answers.map(({ accepted, drafted: tried }) => accepted / tried));
    report(share >= 0.8, `--speculate ${name}: ${(100 * share).toFixed(1)} % of the drafts are taken`);
    const faster = rate(answers) / rate(plain);
    report(faster >= 1.5, `--speculate ${name}: ${rate(answers).toFixed(1)} tok/s, without drafts ${rate(plain).toFixed(1)}: ${faster.toFixed(2)}x`);
  }
} finally {
  rmSync(folder, { recursive: true });
}
process.exit(short > 0 ? 1 : 0);
