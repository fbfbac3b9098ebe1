// What is kept in the browser.
import type { ErrorKind } from '../api/errors';

export interface Settings {
  systemPrompt: string;
  thinking: boolean;
  // null: the server's default for the model
  temperature: number | null;
  topP: number | null;
  topK: number | null;
  maxTokens: number | null;
}

export const defaultSettings: Settings = {
  systemPrompt: '',
  thinking: true,
  temperature: null,
  topP: null,
  topK: null,
  maxTokens: null,
};

export interface ToolCall {
  name: string;
  arguments: string; // JSON, maybe not yet whole
}

// Of one answer; the server's own figures once they are there.
export interface Stats {
  promptTokens: number;
  cachedTokens: number;
  tokens: number;
  promptMs: number;
  decodeMs: number;
  drafted: number;
  accepted: number;
}

export interface UserMessage {
  id: string;
  role: 'user';
  content: string;
}

export interface AssistantMessage {
  id: string;
  role: 'assistant';
  content: string;
  reasoning: string;
  reasoningMs: number | null; // null: not ended
  toolCalls: ToolCall[];
  stats: Stats | null;
  // running: an answer in the making, or one that a closed page left behind
  end: 'running' | 'stop' | 'length' | 'stopped' | 'failed';
  failure: { kind: ErrorKind; message: string } | null;
}

export type Message = UserMessage | AssistantMessage;

export interface Conversation {
  id: string;
  title: string;
  created: number;
  updated: number;
  settings: Settings;
  messages: Message[];
}

export interface Summary {
  id: string;
  title: string;
  updated: number;
}

export const newId = (): string => {
  // randomUUID exists only on https and localhost; the page may be opened by address.
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
};
