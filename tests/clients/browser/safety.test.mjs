// What a hostile answer, a locked, loading or missing server must not and must do.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { answered, ask, launch, open, phone, startMock } from './harness.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const withMock = (name, flags, body) => test(name, async () => {
  const mock = await startMock(...flags);
  try {
    await body(mock);
  } finally {
    mock.stop();
  }
});

withMock('a hostile answer runs nothing, loads nothing, covers nothing', [], async (mock) => {
  const { tab, shot, finish } = await open(browser, mock.url);
  await ask(tab, 'Be hostile');
  await answered(tab);
  await tab.getByText('End of the hostile answer.').waitFor();
  const answer = tab.locator('.answer');
  assert.equal(await answer.locator('script, img, svg:not(.icon), iframe, form, style, object, embed, video, audio, base, meta, link, input:not([type=checkbox])').count(), 0);
  assert.equal(await answer.evaluate((node) => [...node.querySelectorAll('.prose *')].filter((child) => [...child.attributes].some(({ name }) => name.startsWith('on') || name === 'style' || name === 'id')).length), 0);
  for (const href of await answer.locator('a').evaluateAll((links) => links.map((link) => link.getAttribute('href')))) {
    assert.ok(href === null || /^https?:/.test(href), href);
  }
  assert.equal(await answer.locator('.prose button:not(.copy-code), .prose .composer').count(), 0);
  // A picture is a link that says where it leads.
  assert.equal(await answer.getByRole('link', { name: 'Image: tracking' }).getAttribute('href'), 'https://evil.example/pixel.png?q=secret');
  for (const link of await answer.locator('a:not([href])').all()) await link.click({ force: true, timeout: 2000 });
  await tab.waitForTimeout(300);
  await shot('desktop-light-hostile');
  // The policy also holds, and is noisy, in the dead document in which the answer is cleaned.
  await finish({ except: /Content Security Policy|TrustedScript/ });
});

withMock('the policy stops a script even if one got into the page', [], async (mock) => {
  const { tab, context } = await open(browser, mock.url);
  const blocked = [];
  tab.on('console', (message) => blocked.push(message.text()));
  await tab.evaluate(() => {
    const script = document.createElement('script');
    try {
      script.textContent = 'window.pwned = 1';
      document.body.append(script);
    } catch {
      window.refused = true; // trusted types
    }
  });
  assert.equal(await tab.evaluate(() => window.pwned), undefined);
  assert.equal(await tab.evaluate(() => window.refused), true);
  const refused = await tab.evaluate(() => fetch('https://evil.example/').then(() => false, () => true));
  assert.ok(refused && blocked.some((text) => /Content Security Policy/.test(text)));
  await context.close();
});

withMock('a key is asked for, refused, and taken', ['--key', 'secret'], async (mock) => {
  const { tab, shot, finish } = await open(browser, mock.url);
  await tab.getByText('This server asks for an API key.').waitFor();
  await shot('desktop-light-key');
  await tab.getByPlaceholder('API key').fill('wrong');
  await tab.keyboard.press('Enter');
  await tab.getByText('The server did not take this API key.').waitFor();
  await tab.getByPlaceholder('API key').fill('secret');
  await tab.keyboard.press('Enter');
  await tab.locator('.gate').waitFor({ state: 'detached' });
  await ask(tab, 'Hello');
  await answered(tab);
  await tab.reload();
  await tab.locator('.prose').waitFor();
  assert.equal(await tab.locator('.gate').count(), 0);
  await finish();
});

withMock('while the model loads, a question waits and is then answered', ['--load', '2.5'], async (mock) => {
  const { tab, shot, finish } = await open(browser, mock.url);
  await tab.getByText(/The model is loading/).waitFor();
  assert.ok(Number(await tab.getByLabel('Loading the model').getAttribute('value')) > 0);
  await ask(tab, 'Are you there?');
  await tab.locator('.waiting').waitFor();
  await shot('desktop-light-loading');
  await answered(tab);
  assert.equal(await tab.locator('.gate').count(), 0);
  await finish();
});

withMock('a server that is not well is not one that loads', ['--unwell', 'The engine cannot answer'], async (mock) => {
  const { tab, finish } = await open(browser, mock.url);
  await tab.getByText('The engine cannot answer').waitFor();
  assert.equal(await tab.getByText(/The model is loading/).count(), 0);
  await finish();
});

withMock('errors say what to do; a lost server is noticed', [], async (mock) => {
  const { tab, shot, context } = await open(browser, mock.url);
  await ask(tab, 'word '.repeat(5000));
  await tab.getByText(/maximum context length is 4096 tokens/).waitFor();
  await tab.getByText(/Start a new conversation/).waitFor();
  await shot('desktop-light-error');
  await tab.getByRole('button', { name: 'New conversation' }).click();
  await ask(tab, 'A slow answer');
  await tab.locator('.thinking').waitFor();
  mock.stop();
  await tab.locator('.failure').waitFor();
  await tab.getByRole('button', { name: 'Try again' }).click();
  await tab.getByText('The server cannot be reached.').waitFor();
  await context.close();
});

withMock('dark and light follow the system and can be chosen', [], async (mock) => {
  const { tab, shot, finish } = await open(browser, mock.url, { viewport: { width: 1280, height: 800 }, colorScheme: 'dark' });
  const background = () => tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await background(), 'rgb(21, 23, 26)');
  await ask(tab, 'Hello');
  await answered(tab);
  await shot('desktop-dark');
  await tab.emulateMedia({ colorScheme: 'light' });
  assert.equal(await background(), 'rgb(251, 250, 247)');
  await tab.getByRole('button', { name: 'Theme: system' }).click();
  await tab.getByRole('button', { name: 'Theme: light' }).click();
  assert.equal(await background(), 'rgb(21, 23, 26)');
  await tab.reload();
  assert.equal(await background(), 'rgb(21, 23, 26)');
  await finish();
});

withMock('on a phone nothing is cut off and the list is a drawer', [], async (mock) => {
  const { tab, shot, finish } = await open(browser, mock.url, phone);
  const inside = async (locator) => {
    const box = await locator.boundingBox();
    const { width, height } = tab.viewportSize();
    assert.ok(box && box.x >= 0 && box.y >= 0 && box.x + box.width <= width + 0.5 && box.y + box.height <= height + 0.5, JSON.stringify(box));
  };
  await tab.getByText('4,096 tokens of context').waitFor();
  await shot('phone-empty');
  assert.equal(await tab.locator('.sidebar').isVisible(), false);
  await inside(tab.getByLabel('Your message'));
  await ask(tab, 'Write code');
  await answered(tab);
  await inside(tab.getByLabel('Your message'));
  await inside(tab.getByRole('button', { name: 'Settings', exact: true }));
  assert.equal(await tab.evaluate(() => document.documentElement.scrollWidth), 390);
  await tab.locator('.messages').evaluate((box) => (box.scrollTop = 0));
  await shot('phone-code');
  // With a keyboard open, half of the height is left.
  await tab.setViewportSize({ width: 390, height: 420 });
  await inside(tab.getByLabel('Your message'));
  await shot('phone-keyboard');
  await tab.setViewportSize(phone.viewport);
  await tab.getByRole('button', { name: 'Conversations' }).click();
  await tab.locator('.sidebar').waitFor();
  await shot('phone-drawer');
  await tab.locator('.list .open').click();
  await tab.locator('.sidebar').waitFor({ state: 'hidden' });
  await tab.getByRole('button', { name: 'Settings', exact: true }).click();
  await shot('phone-settings');
  await finish();
});
