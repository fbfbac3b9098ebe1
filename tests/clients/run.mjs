// Runs the client tests against a server. usage: node run.mjs URL KEY [FILE...]
import { readdirSync } from 'node:fs';
import process from 'node:process';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';

const [url, key, ...wanted] = process.argv.slice(2);
if (!url || !key) {
  console.error('usage: node run.mjs URL KEY [FILE...]');
  process.exit(2);
}
Object.assign(process.env, { SLIPSTREAM_URL: url.replace(/\/$/, ''), SLIPSTREAM_KEY: key });

async function waitUntilReady() {
  for (let tries = 0; tries < 300; ++tries) {
    const ready = await fetch(`${process.env.SLIPSTREAM_URL}/health`).then((response) => response.ok, () => false);
    if (ready) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  console.error(`${url} is not ready after 30 s`);
  process.exit(1);
}
await waitUntilReady();

const folder = fileURLToPath(new URL('.', import.meta.url));
const names = wanted.length > 0 ? wanted : readdirSync(folder).filter((name) => name.endsWith('.test.mjs')).sort();
const files = names.map((name) => folder + name);
run({ files, concurrency: 1, timeout: 120_000 })
  .on('test:fail', () => (process.exitCode = 1))
  .compose(spec)
  .pipe(process.stdout);
