// Collects the events of one streamed answer into a message.
import type { ChatEvent, Timings, ToolCallDelta } from '../api/chat';
import type { ApiError } from '../api/errors';
import { newId, type AssistantMessage, type Stats, type ToolCall } from './types';

const tooShortToTell = 20; // ms

export class LiveAnswer {
  promptShare: number | null = null;
  private readonly id = newId();
  private content = '';
  private reasoning = '';
  private reasoningSince: number | null = null;
  private reasoningMs: number | null = null;
  private toolCalls: ToolCall[] = [];
  private timings: Timings = {};
  private usage: { prompt: number; completion: number } | null = null;
  private promptTokens = 0;
  private end: AssistantMessage['end'] = 'running';
  private failure: AssistantMessage['failure'] = null;
  private readonly asked = performance.now();
  private first = 0; // when the first and the last token came
  private last = 0;
  private tokens = 0;

  get started(): boolean {
    return this.tokens > 0;
  }

  take(event: ChatEvent): void {
    switch (event.type) {
      case 'reasoning':
        this.count();
        this.reasoningSince ??= this.last;
        this.reasoning += event.text;
        break;
      case 'content':
        this.count();
        this.endReasoning();
        this.content += event.text;
        break;
      case 'tool':
        this.count();
        this.endReasoning();
        this.takeTool(event.delta);
        break;
      case 'prompt':
        this.promptTokens = event.total;
        this.promptShare = event.total > 0 ? event.processed / event.total : null;
        break;
      case 'finish':
        this.end = event.reason === 'length' ? 'length' : 'stop';
        break;
      case 'usage':
        this.usage = { prompt: event.usage.prompt_tokens, completion: event.usage.completion_tokens };
        break;
      case 'timings':
        this.timings = { ...this.timings, ...event.timings };
        break;
    }
  }

  private count(): void {
    this.last = performance.now();
    this.first ||= this.last;
    this.tokens += 1;
    this.promptShare = null;
  }

  private endReasoning(): void {
    if (this.reasoningSince !== null) this.reasoningMs ??= performance.now() - this.reasoningSince;
  }

  private takeTool({ index, function: call }: ToolCallDelta): void {
    const known = this.toolCalls[index] ?? { name: '', arguments: '' };
    this.toolCalls = this.toolCalls.slice();
    this.toolCalls[index] = { name: known.name + (call?.name ?? ''), arguments: known.arguments + (call?.arguments ?? '') };
  }

  stop(): void {
    this.end = 'stopped';
  }

  fail(error: ApiError): void {
    this.end = 'failed';
    this.failure = { kind: error.kind, message: error.message };
  }

  finish(): void {
    this.endReasoning();
    if (this.end === 'running') this.end = 'stop';
  }

  rate(): number {
    const { predicted_n: tokens = this.tokens, predicted_ms: ms = this.last - this.first } = this.timings;
    return ms > tooShortToTell ? (1000 * tokens) / ms : 0;
  }

  private stats(): Stats | null {
    if (!this.started) return null;
    const timings = this.timings;
    return {
      promptTokens: this.usage?.prompt ?? this.promptTokens,
      cachedTokens: timings.cache_n ?? 0,
      tokens: this.usage?.completion ?? timings.predicted_n ?? this.tokens,
      promptMs: timings.prompt_ms ?? this.first - this.asked,
      decodeMs: timings.predicted_ms ?? this.last - this.first,
      drafted: timings.draft_n ?? 0,
      accepted: timings.draft_n_accepted ?? 0,
    };
  }

  message(): AssistantMessage {
    return {
      id: this.id,
      role: 'assistant',
      content: this.content,
      reasoning: this.reasoning,
      reasoningMs: this.reasoningMs,
      toolCalls: this.toolCalls,
      stats: this.stats(),
      end: this.end,
      failure: this.failure,
    };
  }
}
