// The page as the binary serves it, with a model behind it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, test } from 'node:test';
import { answered, ask, launch, open } from './harness.mjs';

const binary = process.env.SLIPSTREAM_BINARY;
const skip = binary ? false : 'no binary was given';
const key = 'a-key-for-this-test';
let browser, server, url;

before(async () => {
  if (skip) return;
  browser = await launch();
  server = spawn(binary, ['serve', '--port', '0'], { env: { ...process.env, SLIPSTREAM_API_KEY: key }, stdio: ['ignore', 'ignore', 'pipe'] });
  url = await new Promise((resolve, reject) => {
    let log = '';
    server.stderr.on('data', (piece) => {
      log += piece;
      const found = /http:\/\/[\d.:]+/.exec(log);
      if (found) resolve(found[0]);
    });
    server.on('exit', () => reject(new Error(log)));
  });
});
after(async () => {
  await browser?.close();
  server?.kill();
});

test('a conversation with minnow', { skip }, async () => {
  const { tab, shot, finish } = await open(browser, url);
  await tab.getByPlaceholder('API key').fill(key);
  await tab.keyboard.press('Enter');
  await tab.getByText(/tokens of context/).waitFor();
  // The same every time, and short.
  await tab.getByRole('button', { name: 'Settings', exact: true }).click();
  await tab.getByLabel(/Temperature/).fill('0');
  await tab.getByLabel(/Answer limit/).fill('200');
  await tab.keyboard.press('Escape');
  await ask(tab, 'Hello');
  await answered(tab);
  const first = await tab.locator('.answer').innerText();
  assert.match(first, /tokens · [\d,]+ tok\/s/);
  await ask(tab, 'What is an HTTP header?');
  await answered(tab);
  assert.equal(await tab.locator('.answer').count(), 2);
  assert.match(await tab.locator('.figures').last().getAttribute('title'), /remembered/);
  await shot('served-minnow');
  await tab.reload();
  await tab.locator('.answer').nth(1).waitFor();
  await finish();
});
