// Bar: `convert int4` (rounding to nearest) takes at least 200 MB of BF16 per second on two cores.
// usage: quantize_speed.mjs BINARY BF16_DIR     BF16_DIR: minnow's, whose experts are repeated
// twenty times so that there is enough to measure
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';

const [binary, source] = process.argv.slice(2);
if (!source) {
  console.error('usage: quantize_speed.mjs BINARY BF16_DIR');
  process.exit(2);
}
const kTimes = 20;
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'quantize-'));
process.on('exit', () => fs.rmSync(work, { recursive: true, force: true }));

const config = JSON.parse(fs.readFileSync(path.join(source, 'config.json'), 'utf8'));
(config.text_config ?? config).num_experts *= kTimes;
const large = path.join(work, 'large');
fs.mkdirSync(large);
fs.writeFileSync(path.join(large, 'config.json'), JSON.stringify(config));
fs.copyFileSync(path.join(source, 'tokenizer.json'), path.join(large, 'tokenizer.json'));

let bytes = 0;
for (const name of fs.readdirSync(source).filter((file) => file.endsWith('.safetensors'))) {
  const file = fs.readFileSync(path.join(source, name));
  const headerLength = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, 8 + headerLength).toString());
  const parts = [], made = {};
  let at = 0;
  for (const [tensor, { dtype, shape, data_offsets: range }] of Object.entries(header)) {
    if (tensor === '__metadata__') continue;
    const repeated = /experts\.(gate_up_proj|down_proj)$|mlp\.gate\.weight$/.test(tensor);
    const data = file.subarray(8 + headerLength + range[0], 8 + headerLength + range[1]);
    const times = repeated ? kTimes : 1;
    for (let i = 0; i < times; ++i) parts.push(data);
    made[tensor] = { dtype, shape: [shape[0] * times, ...shape.slice(1)], data_offsets: [at, at + times * data.length] };
    at += times * data.length;
  }
  const text = Buffer.from(JSON.stringify(made)), length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  fs.writeFileSync(path.join(large, name), Buffer.concat([length, text, ...parts]));
  bytes += at;
}
const index = { metadata: {}, weight_map: {} };
for (const name of fs.readdirSync(large).filter((file) => file.endsWith('.safetensors'))) {
  const fd = fs.openSync(path.join(large, name)), length = Buffer.alloc(8);
  fs.readSync(fd, length, 0, 8, 0);
  const text = Buffer.alloc(Number(length.readBigUInt64LE(0)));
  fs.readSync(fd, text, 0, text.length, 8);
  fs.closeSync(fd);
  for (const tensor of Object.keys(JSON.parse(text.toString()))) index.weight_map[tensor] = name;
}
fs.writeFileSync(path.join(large, 'model.safetensors.index.json'), JSON.stringify(index));

const rates = [];
for (let round = 0; round < 3; ++round) {
  const out = path.join(work, `out-${round}`);
  const begin = performance.now();
  execFileSync(binary, ['convert', 'int4', '--model', large, '--out', out, '--quiet'], { stdio: ['ignore', 'ignore', 'inherit'] });
  rates.push(bytes / 1e3 / (performance.now() - begin));
  fs.rmSync(out, { recursive: true });
}
rates.sort((a, b) => a - b);
console.log(`${rates[1] >= 200 ? 'met  ' : 'SHORT'} ${(bytes / 1e6).toFixed(0)} MB of BF16 to INT4, at least 200 MB/s: ${rates.map((rate) => rate.toFixed(0)).join(' ')}`);
process.exit(rates[1] >= 200 ? 0 : 1);
