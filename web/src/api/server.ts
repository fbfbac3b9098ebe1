// The few requests that the page makes besides chatting.
import { ApiError, asApiError, errorFrom } from './errors';

export type Health = { state: 'ready' } | { state: 'loading'; progress: number | null };

export interface ModelInfo {
  id: string;
  context: number | null; // tokens
  defaults: Defaults;
}

// How it samples if the request does not say.
export interface Defaults {
  temperature?: number;
  top_p?: number;
  top_k?: number;
}

export function withKey(key: string): Record<string, string> {
  return key ? { authorization: `Bearer ${key}` } : {};
}

export async function fetchHealth(): Promise<Health> {
  const response = await fetch('/health', { cache: 'no-store' }).catch((error) => {
    throw asApiError(error);
  });
  if (response.ok) return { state: 'ready' };
  // 503 is also for a server that stops, hangs or has too many connections.
  const body = (await response.clone().json().catch(() => ({}))) as { status?: string; progress?: number };
  if (response.status !== 503 || body.status !== 'loading') throw await errorFrom(response);
  return { state: 'loading', progress: typeof body.progress === 'number' ? body.progress : null };
}

interface ModelList {
  data?: { id: string; max_model_len?: number; meta?: { n_ctx?: number } }[];
}

export async function fetchModel(key: string): Promise<ModelInfo> {
  const response = await fetch('/v1/models', { headers: withKey(key), cache: 'no-store' }).catch((error) => {
    throw asApiError(error);
  });
  if (!response.ok) throw await errorFrom(response);
  const first = ((await response.json()) as ModelList).data?.[0];
  if (!first) throw new ApiError('server', 'The server names no model.');
  return { id: first.id, context: first.max_model_len ?? first.meta?.n_ctx ?? null, defaults: await fetchDefaults(key) };
}

// Only for show, so a server without them will do.
async function fetchDefaults(key: string): Promise<Defaults> {
  try {
    const response = await fetch('/props', { headers: withKey(key), cache: 'no-store' });
    const props = (await response.json()) as { default_generation_settings?: { params?: Defaults } };
    return props.default_generation_settings?.params ?? {};
  } catch {
    return {};
  }
}
