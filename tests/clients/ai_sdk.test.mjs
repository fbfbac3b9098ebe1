// The `ai` package with its provider for OpenAI-like servers.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, Output, streamText, tool } from 'ai';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { key, model, url } from './target.mjs';

const provider = createOpenAICompatible({ name: 'slipstream', baseURL: `${url}/v1`, apiKey: key, includeUsage: true, supportsStructuredOutputs: true });
const chat = provider(model);
const quiet = { model: chat, temperature: 0, maxRetries: 0, maxOutputTokens: 48, providerOptions: { slipstream: { chat_template_kwargs: { enable_thinking: false } } } };

test('text, whole and streamed', async () => {
  const prompt = 'Write one sentence about the sea.';
  const { text, usage } = await generateText({ ...quiet, prompt });
  assert.ok(text.length > 0 && usage.outputTokens > 0);
  const stream = streamText({ ...quiet, prompt });
  let streamed = '';
  for await (const piece of stream.textStream) streamed += piece;
  assert.equal(streamed, text);
  assert.equal((await stream.usage).outputTokens, usage.outputTokens);
});

test('thinking is recognised', async () => {
  const thinking = { ...quiet, prompt: 'Hello', providerOptions: { slipstream: { chat_template_kwargs: { enable_thinking: true } } } };
  assert.ok((await generateText(thinking)).reasoningText.length > 0);
});

test('tools', async () => {
  const inputSchema = z.object({ city: z.enum(['Oslo', 'Rome']), days: z.number().int().min(1).max(9) });
  const asked = { ...quiet, maxOutputTokens: 200, prompt: 'Weather?', toolChoice: 'required', tools: { get_weather: tool({ description: 'Weather', inputSchema }) } };
  const { toolCalls, finishReason } = await generateText(asked);
  assert.equal(finishReason, 'tool-calls');
  assert.ok(inputSchema.safeParse(toolCalls[0].input).success);
  const stream = streamText(asked);
  await stream.consumeStream();
  assert.ok(inputSchema.safeParse((await stream.toolCalls)[0].input).success);
});

test('objects of a schema', async () => {
  const schema = z.object({ kind: z.enum(['ship', 'boat']), masts: z.number().int().min(0).max(9) });
  const { output } = await generateText({ ...quiet, maxOutputTokens: 120, prompt: 'Describe a ship.', output: Output.object({ schema }) });
  assert.ok(schema.safeParse(output).success);
});
