// How things stand with the server: unreachable, loading, asking for a key, or ready.
import { computed, effect, signal } from '@preact/signals';
import { ApiError } from '../api/errors';
import { fetchHealth, fetchModel, type ModelInfo } from '../api/server';
import { apiKey, setApiKey } from './preferences';

export type Connection =
  | { state: 'connecting' }
  | { state: 'unreachable'; message: string }
  | { state: 'loading'; progress: number | null }
  | { state: 'key'; refused: boolean }
  | { state: 'ready'; model: ModelInfo };

export const connection = signal<Connection>({ state: 'connecting' });
export const model = computed(() => (connection.value.state === 'ready' ? connection.value.model : null));

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
let connecting: Promise<void> | null = null;

// Asks until the server is ready or wants a key. One at a time, however often it is called.
export function connect(): Promise<void> {
  connecting ??= tryUntilSettled().finally(() => (connecting = null));
  return connecting;
}

async function tryUntilSettled(): Promise<void> {
  for (let failures = 0; ; ) {
    try {
      const health = await fetchHealth();
      failures = 0;
      if (health.state === 'ready') {
        connection.value = { state: 'ready', model: await fetchModel(apiKey.peek()) };
        return;
      }
      connection.value = health;
    } catch (error) {
      if (error instanceof ApiError && error.kind === 'key') {
        connection.value = { state: 'key', refused: apiKey.peek() !== '' };
        return;
      }
      failures += 1;
      connection.value = { state: 'unreachable', message: error instanceof Error ? error.message : String(error) };
    }
    await pause(failures > 0 ? Math.min(500 * 2 ** failures, 8000) : 400);
  }
}

export function askForKey(): void {
  connection.value = { state: 'key', refused: apiKey.peek() !== '' };
}

export async function useKey(key: string, keep: boolean): Promise<void> {
  setApiKey(key.trim(), keep);
  await connect();
}

// Resolves when requests can be made.
export async function ready(stopped: AbortSignal): Promise<ModelInfo> {
  const { promise, resolve, reject } = Promise.withResolvers<ModelInfo>();
  const abort = () => reject(new DOMException('stopped', 'AbortError'));
  stopped.addEventListener('abort', abort);
  const dispose = effect(() => {
    if (model.value) resolve(model.value);
  });
  try {
    return await promise;
  } finally {
    dispose();
    stopped.removeEventListener('abort', abort);
  }
}
