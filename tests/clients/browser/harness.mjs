// A browser, a stand-in server, and what every test of the page wants to know at its end: that no
// script of the model ran, that nothing outside was asked for, and that the page broke no rule.
import { spawn } from 'node:child_process';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
export const page = here('../../../web/dist/index.html');
const screenshots = here('../screenshots/');
mkdirSync(screenshots, { recursive: true });

export async function startMock(...flags) {
  const child = spawn(process.execPath, [here('../mock/server.mjs'), '--port', '0', '--page', page, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(child.stdout, 'data');
  return { url: /http\S+/.exec(String(line))[0], stop: () => child.kill() };
}

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });

export const desktop = { viewport: { width: 1280, height: 800 } };
export const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };

export async function open(browser, url, options = desktop) {
  const context = await browser.newContext({ colorScheme: 'light', ...options });
  context.setDefaultTimeout(8000);
  const tab = await context.newPage();
  const outside = [];
  const complaints = [];
  tab.on('request', (request) => {
    if (!request.url().startsWith(url) && !/^(data|blob):/.test(request.url())) outside.push(request.url());
  });
  tab.on('pageerror', (error) => complaints.push(String(error)));
  tab.on('console', (message) => {
    // Chromium logs every answer of 400 and above by itself.
    if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) complaints.push(message.text());
  });
  await tab.goto(url);
  return {
    tab,
    context,
    shot: (name) => tab.screenshot({ path: `${screenshots}${name}.png` }),
    async finish({ except = /^$/ } = {}) {
      assert.equal(await tab.evaluate(() => window.pwned), undefined, 'a script of the model ran');
      assert.deepEqual(outside, [], 'the page asked for something outside');
      assert.deepEqual(complaints.filter((text) => !except.test(text)), [], 'the page complained');
      await context.close();
    },
  };
}

export async function ask(tab, question) {
  await tab.getByLabel('Your message').fill(question);
  await tab.getByRole('button', { name: 'Send' }).click();
}

export const answered = (tab) => tab.locator('.answer:last-child:not(.running) .figures').waitFor();
