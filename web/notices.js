// The copyright notices of the libraries inside the page, which travel with it.
import { readFileSync } from 'node:fs';

const read = (path) => readFileSync(new URL(`node_modules/${path}`, import.meta.url), 'utf8').trim();

const libraries = ['preact', '@preact/signals', 'marked', 'highlight.js', 'temml'];

export function notices() {
  const whole = libraries.map((name) => `${name} ${JSON.parse(read(`${name}/package.json`)).version}\n\n${read(`${name}/LICENSE`)}`);
  // Its licence, Apache-2.0, is also ours; the notice names it.
  const purify = /@license (.*?) \*\//.exec(read('dompurify/dist/purify.es.mjs'))[1];
  return ['The chat page of slipstream, Apache-2.0. It contains:', purify, ...whole].join('\n\n* * *\n\n');
}
