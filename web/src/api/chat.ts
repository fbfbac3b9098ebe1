// One streamed answer of /v1/chat/completions.
import { ApiError, errorFrom } from './errors';
import { withKey } from './server';
import { eventData } from './sse';

export interface ChatRequest {
  model: string;
  messages: { role: string; content: string }[];
  temperature?: number;
  top_p?: number;
  top_k?: number;
  max_tokens?: number;
  chat_template_kwargs: { enable_thinking: boolean };
}

// Until the last chunk only some of them are there.
export interface Timings {
  prompt_n?: number;
  prompt_ms?: number;
  predicted_n?: number;
  predicted_ms?: number;
  cache_n?: number;
  draft_n?: number;
  draft_n_accepted?: number;
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

export interface ToolCallDelta {
  index: number;
  function?: { name?: string; arguments?: string };
}

interface Chunk {
  error?: { message?: string };
  choices?: {
    delta?: { content?: string | null; reasoning_content?: string; reasoning?: string; tool_calls?: ToolCallDelta[] };
    finish_reason?: string | null;
  }[];
  prompt_progress?: { total: number; processed: number };
  usage?: Usage;
  timings?: Timings;
}

export type ChatEvent =
  | { type: 'reasoning' | 'content'; text: string }
  | { type: 'tool'; delta: ToolCallDelta }
  | { type: 'prompt'; processed: number; total: number }
  | { type: 'finish'; reason: string }
  | { type: 'usage'; usage: Usage }
  | { type: 'timings'; timings: Timings };

function* eventsOf(chunk: Chunk): Generator<ChatEvent> {
  if (chunk.error) throw new ApiError('server', chunk.error.message ?? 'The server broke the answer off.');
  if (chunk.prompt_progress) yield { type: 'prompt', ...chunk.prompt_progress };
  const choice = chunk.choices?.[0];
  const reasoning = choice?.delta?.reasoning_content ?? choice?.delta?.reasoning;
  if (reasoning) yield { type: 'reasoning', text: reasoning };
  if (choice?.delta?.content) yield { type: 'content', text: choice.delta.content };
  for (const delta of choice?.delta?.tool_calls ?? []) yield { type: 'tool', delta };
  if (choice?.finish_reason) yield { type: 'finish', reason: choice.finish_reason };
  if (chunk.usage) yield { type: 'usage', usage: chunk.usage };
  if (chunk.timings) yield { type: 'timings', timings: chunk.timings };
}

export async function* streamChat(request: ChatRequest, key: string, signal: AbortSignal): AsyncGenerator<ChatEvent> {
  const response = await fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...withKey(key) },
    body: JSON.stringify({
      ...request,
      stream: true,
      stream_options: { include_usage: true },
      return_progress: true,
      timings_per_token: true,
    }),
    signal,
  });
  if (!response.ok || !response.body) throw await errorFrom(response);
  let finished = false;
  for await (const data of eventData(response.body)) {
    if (data === '[DONE]') return;
    for (const event of eventsOf(JSON.parse(data) as Chunk)) {
      finished ||= event.type === 'finish';
      yield event;
    }
  }
  if (!finished) throw new ApiError('stream', 'The connection ended before the answer did.');
}
