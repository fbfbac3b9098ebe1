// Tries the tests themselves: they must pass on the stand-in server, and fail when it breaks a rule.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
// Rule broken -> the file whose tests must notice.
const flaws = {
  'usage-null': 'openai_chat.test.mjs', 'usage-always': 'quirks.test.mjs', 'changing-id': 'openai_chat.test.mjs', 'no-tool-index': 'openai_chat.test.mjs',
  'thinking-in-content': 'openai_chat.test.mjs', 'wrong-finish': 'openai_chat.test.mjs', 'no-done': 'quirks.test.mjs', 'no-event-names': 'anthropic.test.mjs',
  'key-403': 'openai_chat.test.mjs', 'no-error-code': 'openai_chat.test.mjs', 'busy-503': 'overload.test.mjs', 'talks-on': 'openai_chat.test.mjs',
};

async function failures(flaw, files) {
  const flags = flaw ? ['--flaw', flaw] : [];
  const mock = spawn(process.execPath, [here('mock/server.mjs'), '--port', '0', '--key', 'secret', '--delay', '1', ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(mock.stdout, 'data');
  const { status, stdout } = spawnSync(process.execPath, [here('run.mjs'), /http\S+/.exec(String(line))[0], 'secret', ...files], { encoding: 'utf8' });
  mock.kill();
  return { status, stdout };
}

let wrong = 0;
const report = (right, text, output) => {
  console.log(`${right ? 'ok' : 'WRONG'}: ${text}`);
  if (!right) console.log(output);
  wrong += right ? 0 : 1;
};
const clean = await failures(null, []);
report(clean.status === 0, 'the stand-in server passes', clean.stdout);
for (const [flaw, file] of Object.entries(flaws)) {
  const { status, stdout } = await failures(flaw, [file]);
  report(status === 1, `${file} notices ${flaw}`, stdout);
}
process.exit(wrong === 0 ? 0 : 1);
