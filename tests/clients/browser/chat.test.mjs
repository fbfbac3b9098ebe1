// Chatting: send, stream, stop, regenerate, edit, keep, rename, delete, export, settings.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { answered, ask, launch, open, startMock } from './harness.mjs';

let browser, mock;
before(async () => {
  [browser, mock] = await Promise.all([launch(), startMock()]);
});
after(async () => {
  await browser.close();
  mock.stop();
});

test('an answer streams, thinks, and reports its figures', async () => {
  const { tab, shot, finish } = await open(browser, mock.url);
  await tab.getByText('4,096 tokens of context').waitFor();
  await shot('desktop-light-empty');
  await ask(tab, 'What is slipstream?');
  await answered(tab);
  await tab.getByText(/^Thought for/).click();
  assert.match(await tab.locator('.figures').innerText(), /tokens · \d+ tok\/s · 71 % of drafts accepted/);
  assert.match(await tab.locator('.meter').innerText(), /tok\/s[\s\S]*drafts[\s\S]*%/);
  assert.equal(await tab.locator('.answer strong').innerText(), 'nothing is fetched');
  await shot('desktop-light-thinking');
  await finish();
});

test('thinking streams while it is open and shows its seconds', async () => {
  const { tab, finish } = await open(browser, mock.url);
  await ask(tab, 'A slow answer');
  await tab.getByText(/^Thinking…/).click();
  const early = await tab.locator('.thinking-text').innerText();
  await tab.waitForFunction((length) => document.querySelector('.thinking-text').innerText.length > length, early.length);
  await tab.getByText(/^Thinking… [1-9] s/).waitFor();
  await tab.getByText(/^Thought for \d/).waitFor();
  await finish();
});

test('code is coloured and can be copied, also inside a list', async () => {
  const { tab, context, shot, finish } = await open(browser, mock.url);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await ask(tab, 'Write code');
  await answered(tab);
  assert.ok((await tab.locator('.hljs-keyword').count()) > 5);
  await tab.getByRole('button', { name: 'Copy bash code' }).click();
  assert.equal(await tab.evaluate(() => navigator.clipboard.readText()), 'g++ -std=c++20 -O2 cache.cc && ./a.out --entries 1000');
  await tab.locator('.messages').evaluate((box) => (box.scrollTop = 0));
  await shot('desktop-light-code');
  await tab.getByRole('button', { name: /^Theme/ }).click();
  await tab.getByRole('button', { name: /^Theme/ }).click();
  await shot('desktop-dark-code');
  assert.equal(await tab.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(21, 23, 26)');
  await finish();
});

test('tool calls are shown', async () => {
  const { tab, shot, finish } = await open(browser, mock.url);
  await ask(tab, 'Call a tool');
  await answered(tab);
  const call = tab.getByRole('region', { name: 'Tool call get_weather' });
  assert.deepEqual(JSON.parse(await call.locator('pre').innerText()), { city: 'Oslo' });
  await shot('desktop-light-tool');
  await finish();
});

test('formulas are set, money is not', async () => {
  const { tab, shot, finish } = await open(browser, mock.url);
  await ask(tab, 'Some math');
  await answered(tab);
  assert.equal(await tab.locator('.formula math').count(), 4);
  assert.match(await tab.locator('.prose').innerText(), /costs \$5 or \$10/);
  await shot('desktop-light-math');
  await finish();
});

test('a link is one as soon as its target has come', async () => {
  const { tab, finish } = await open(browser, mock.url);
  await ask(tab, 'Slow links');
  await answered(tab);
  assert.equal(await tab.locator('.answer a[href="https://example.org/book"]').innerText(), 'the book');
  await finish();
});

test('stop keeps what came, regenerate answers again', async () => {
  const { tab, finish } = await open(browser, mock.url);
  await ask(tab, 'A slow answer');
  await tab.locator('.meter .speed').waitFor();
  await tab.keyboard.press('Escape');
  await tab.getByText('Stopped.').waitFor();
  const stopped = await tab.locator('.answer').innerText();
  await tab.waitForTimeout(300);
  assert.equal(await tab.locator('.answer').innerText(), stopped);
  await tab.getByRole('button', { name: 'Regenerate answer' }).click();
  await tab.locator('.answer.running').waitFor();
  await tab.getByRole('button', { name: 'Stop the answer' }).click();
  assert.equal(await tab.locator('.answer').count(), 1);
  await finish();
});

test('a question can be edited', async () => {
  const { tab, finish } = await open(browser, mock.url);
  await ask(tab, 'First');
  await answered(tab);
  await ask(tab, 'Second');
  await answered(tab);
  await tab.getByRole('article', { name: 'You' }).first().hover();
  await tab.getByRole('button', { name: 'Edit message' }).first().click();
  await tab.getByRole('textbox', { name: 'Message', exact: true }).fill('Changed');
  await tab.keyboard.press('Enter');
  await answered(tab);
  assert.deepEqual(await tab.locator('.question-text').allInnerTexts(), ['Changed']);
  await finish();
});

test('conversations survive a reload, even in the middle of an answer', async () => {
  const { tab, finish } = await open(browser, mock.url);
  await ask(tab, 'Remember me');
  await answered(tab);
  const text = await tab.locator('.prose').innerText();
  await tab.reload();
  assert.equal(await tab.locator('.prose').innerText(), text);
  await tab.getByRole('button', { name: 'New conversation' }).click();
  await ask(tab, 'A slow one');
  await tab.locator('.thinking').waitFor();
  await tab.waitForTimeout(700);
  await tab.reload();
  await tab.getByText('Stopped.').waitFor();
  assert.equal(await tab.locator('.list li').count(), 2);
  await tab.locator('.list .open', { hasText: 'Remember me' }).click();
  assert.equal(await tab.locator('.prose').innerText(), text);
  await tab.goBack();
  await tab.getByText('Stopped.').waitFor();
  await finish();
});

test('rename, export, delete', async () => {
  const { tab, shot, finish } = await open(browser, mock.url);
  await ask(tab, 'Old name');
  await answered(tab);
  await tab.getByLabel('Actions for Old name').click();
  await shot('desktop-light-menu');
  await tab.getByRole('button', { name: 'Rename' }).click();
  await tab.getByLabel('New name').fill('New name');
  await tab.keyboard.press('Enter');
  await tab.locator('.list .open', { hasText: 'New name' }).waitFor();
  for (const [label, check] of [['JSON', (text) => assert.equal(JSON.parse(text).title, 'New name')], ['Markdown', (text) => assert.match(text, /^# New name\n[\s\S]*## You\n\nOld name\n/)]]) {
    await tab.getByLabel('Actions for New name').click();
    const [download] = await Promise.all([tab.waitForEvent('download'), tab.getByRole('button', { name: `Export as ${label}` }).click()]);
    check(readFileSync(await download.path(), 'utf8'));
  }
  tab.on('dialog', (dialog) => dialog.accept());
  await tab.getByLabel('Actions for New name').click();
  await tab.getByRole('button', { name: 'Delete' }).click();
  await tab.getByText('Conversations stay in this browser.').waitFor();
  await tab.reload();
  await tab.getByText('Conversations stay in this browser.').waitFor();
  await finish();
});

test('settings reach the server', async () => {
  const { tab, shot, finish } = await open(browser, mock.url);
  await tab.getByRole('button', { name: 'Settings', exact: true }).click();
  await tab.getByLabel(/System prompt/).fill('Be brief.');
  await tab.getByLabel(/Temperature/).fill('0.4');
  await tab.getByLabel(/Top k/).fill('20');
  await tab.getByLabel(/Answer limit/).fill('30');
  await tab.getByLabel('Think before answering').uncheck();
  await shot('desktop-light-settings');
  await tab.keyboard.press('Escape');
  const [request] = await Promise.all([tab.waitForRequest(/chat\/completions/), ask(tab, 'Hello')]);
  const body = request.postDataJSON();
  assert.deepEqual(body.messages, [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Hello' }]);
  assert.deepEqual([body.temperature, body.top_k, body.top_p, body.max_tokens], [0.4, 20, undefined, 30]);
  assert.equal(body.chat_template_kwargs.enable_thinking, false);
  await tab.getByText(/^Cut off/).waitFor();
  await tab.getByRole('button', { name: 'New conversation' }).click();
  assert.equal(await tab.getByRole('switch', { name: 'Think' }).getAttribute('aria-checked'), 'false');
  await finish();
});

test('a long answer is followed until the reader scrolls away', async () => {
  const { tab, finish } = await open(browser, mock.url);
  await ask(tab, 'A long answer');
  await tab.getByText('Paragraph 12.').waitFor();
  const gap = () => tab.locator('.messages').evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
  assert.ok((await gap()) < 80);
  await tab.locator('.messages').hover();
  await tab.mouse.wheel(0, -600);
  await tab.getByRole('button', { name: 'Go to the end' }).waitFor();
  const before = await tab.locator('.messages').evaluate((box) => box.scrollTop);
  await tab.waitForTimeout(400);
  assert.equal(await tab.locator('.messages').evaluate((box) => box.scrollTop), before);
  await tab.getByRole('button', { name: 'Go to the end' }).click();
  await answered(tab);
  assert.ok((await gap()) < 80);
  await finish();
});
