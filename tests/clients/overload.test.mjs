// More requests than the server has room for: run.sh starts it with room for 24.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { openai, question, steady } from './target.mjs';

test('the surplus is refused with 429 and a time to come back, the others are served', async () => {
  const ask = () => openai.chat.completions.create({ ...steady, max_tokens: 100, ignore_eos: true, messages: question });
  const results = await Promise.allSettled(Array.from({ length: 60 }, ask));
  const refused = results.filter((result) => result.status === 'rejected').map((result) => result.reason);
  assert.ok(refused.length > 0, 'none was refused');
  assert.ok(refused.length <= 36, `${refused.length} of 60 refused`);
  for (const error of refused) {
    assert.ok(error instanceof OpenAI.RateLimitError, String(error));
    assert.equal(error.type, 'rate_limit_error');
    assert.ok(Number(error.headers.get('retry-after')) > 0);
  }
  for (const { value } of results.filter((result) => result.status === 'fulfilled')) assert.equal(value.choices.length, 1);
  assert.equal((await ask()).choices.length, 1);
});
