// Answers in the making: send, stop, regenerate, edit.
import { signal } from '@preact/signals';
import { streamChat, type ChatRequest } from '../api/chat';
import { asApiError } from '../api/errors';
import { fetchHealth } from '../api/server';
import { askForKey, connect, connection, ready } from './connection';
import { find, saveNow, update } from './conversations';
import { LiveAnswer } from './live_answer';
import { Pacer } from './pacer';
import { apiKey } from './preferences';
import { newId, type AssistantMessage, type Conversation, type Message } from './types';

// What runs, by conversation. `rate` is in tokens per second; `prompt` the share of it that is read.
export interface Run {
  stop: AbortController;
  rate: number;
  prompt: number | null;
}
export const runs = signal<ReadonlyMap<string, Run>>(new Map());

function setRun(id: string, run: Run | null): void {
  const next = new Map(runs.peek());
  if (run) next.set(id, run);
  else next.delete(id);
  runs.value = next;
}

const titleOf = (text: string): string => {
  const line = text.trim().split('\n', 1)[0] ?? '';
  return line.length > 60 ? `${line.slice(0, 57).trimEnd()}…` : line;
};

export function send(id: string, text: string): void {
  const message: Message = { id: newId(), role: 'user', content: text };
  update(id, (conversation) => ({
    ...conversation,
    title: conversation.title || titleOf(text),
    updated: Date.now(),
    messages: [...conversation.messages, message],
  }));
  void answer(id);
}

export const stop = (id: string): void => runs.peek().get(id)?.stop.abort();

// Answers the last user message again.
export function regenerate(id: string): void {
  stop(id);
  update(id, (conversation) => {
    const last = conversation.messages.findLastIndex((message) => message.role === 'user');
    return { ...conversation, messages: conversation.messages.slice(0, last + 1) };
  });
  void answer(id);
}

// Replaces a user message; what came after it goes.
export function edit(id: string, messageId: string, text: string): void {
  stop(id);
  update(id, (conversation) => {
    const at = conversation.messages.findIndex((message) => message.id === messageId);
    return { ...conversation, messages: conversation.messages.slice(0, at) };
  });
  send(id, text);
}

function requestFor({ settings, messages }: Conversation, model: string): ChatRequest {
  const system = settings.systemPrompt.trim();
  return {
    model,
    messages: [
      ...(system ? [{ role: 'system', content: system }] : []),
      ...messages.map(({ role, content }) => ({ role, content })),
    ],
    temperature: settings.temperature ?? undefined,
    top_p: settings.topP ?? undefined,
    top_k: settings.topK ?? undefined,
    max_tokens: settings.maxTokens ?? undefined,
    chat_template_kwargs: { enable_thinking: settings.thinking },
  };
}

async function answer(id: string): Promise<void> {
  const before = find(id);
  if (!before) return;
  const run: Run = { stop: new AbortController(), rate: 0, prompt: null };
  const live = new LiveAnswer();
  setRun(id, run);

  const pacer = new Pacer(() => {
    put(id, live.message());
    if (runs.peek().get(id)?.stop === run.stop) setRun(id, { ...run, rate: live.rate(), prompt: live.promptShare });
  });
  update(id, (conversation) => ({ ...conversation, messages: [...conversation.messages, live.message()] }));

  try {
    for (;;) {
      const model = await ready(run.stop.signal);
      try {
        for await (const event of streamChat(requestFor(before, model.id), apiKey.peek(), run.stop.signal)) {
          live.take(event);
          pacer.soon();
        }
        break;
      } catch (error) {
        if (live.started || !(await canWaitFor(error))) throw error;
      }
    }
  } catch (error) {
    if (run.stop.signal.aborted) live.stop();
    else live.fail(asApiError(error));
  }
  live.finish();
  pacer.cancel();
  put(id, live.message());
  if (runs.peek().get(id)?.stop === run.stop) setRun(id, null);
  saveNow();
}

// A model that loads and a missing key are waited for; the answer then goes on by itself.
async function canWaitFor(error: unknown): Promise<boolean> {
  const { kind } = asApiError(error);
  if (kind === 'key') {
    askForKey();
    return true;
  }
  if (kind !== 'unavailable') return false;
  const loading = await fetchHealth().then((health) => health.state === 'loading', () => false);
  if (loading) {
    connection.value = { state: 'connecting' };
    void connect();
  }
  return loading;
}

// An edit may have removed it meanwhile: then it stays away.
function put(id: string, message: AssistantMessage): void {
  update(id, (conversation) => ({
    ...conversation,
    messages: conversation.messages.map((other) => (other.id === message.id ? message : other)),
  }));
}
