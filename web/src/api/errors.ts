// What went wrong, in the user's words, and what to do about it.

export type ErrorKind = 'key' | 'unavailable' | 'busy' | 'context' | 'request' | 'server' | 'network' | 'stream';

export class ApiError extends Error {
  constructor(
    readonly kind: ErrorKind,
    message: string,
    readonly retryAfter = 0, // seconds
  ) {
    super(message);
  }

  get advice(): string {
    return adviceFor(this.kind);
  }
}

export function adviceFor(kind: ErrorKind): string {
  switch (kind) {
    case 'key': return 'Enter an API key of this server.';
    case 'unavailable': return 'Try again in a moment. If it stays, the server’s log says more.';
    case 'busy': return 'The server has as many requests as it can take. Try again in a moment.';
    case 'context': return 'Start a new conversation, edit an earlier message, or lower the answer limit in the settings.';
    case 'request': return 'Check the settings of this conversation.';
    case 'server': return 'Try again. If it stays, the server’s log says more.';
    case 'network': return 'Check that the server is running and that this device can reach it, then try again.';
    case 'stream': return 'What had arrived is kept. Try again for a whole answer.';
  }
}

interface ErrorBody {
  error?: { message?: string; code?: string | number | null };
}

function kindOf(status: number, code: unknown): ErrorKind {
  if (code === 'context_length_exceeded') return 'context';
  if (status === 401) return 'key';
  if (status === 429) return 'busy';
  if (status === 503) return 'unavailable';
  return status >= 500 ? 'server' : 'request';
}

export async function errorFrom(response: Response): Promise<ApiError> {
  let body: ErrorBody = {};
  try {
    body = (await response.json()) as ErrorBody;
  } catch {
    // Not JSON: the status has to do.
  }
  const message = body.error?.message ?? `The server answered ${response.status} ${response.statusText}`.trim();
  return new ApiError(kindOf(response.status, body.error?.code), message, Number(response.headers.get('retry-after')) || 0);
}

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof TypeError) return new ApiError('network', 'The server cannot be reached.');
  return new ApiError('server', error instanceof Error ? error.message : String(error));
}
