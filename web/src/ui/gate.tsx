// What stands between the page and the model: loading, no connection, a missing key.
import { useEffect, useRef } from 'preact/hooks';
import { connection, useKey } from '../state/connection';
import { percent } from './format';

export function Gate() {
  const now = connection.value;
  switch (now.state) {
    case 'loading': return <Loading progress={now.progress} />;
    case 'unreachable':
      return <div class="gate" role="alert"><p><strong>{now.message}</strong></p><p>Check that the server is well. The page tries again by itself.</p></div>;
    case 'key': return <KeyForm refused={now.refused} />;
    default: return null;
  }
}

const Loading = ({ progress }: { progress: number | null }) => (
  <div class="gate" role="status">
    <p>The model is loading{progress !== null && <span class="number">{percent(progress, 1)}</span>}</p>
    <progress max={1} value={progress ?? undefined} aria-label="Loading the model" />
  </div>
);

function KeyForm({ refused }: { refused: boolean }) {
  const field = useRef<HTMLInputElement>(null);
  const keep = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = (event: Event) => {
    event.preventDefault();
    if (field.current!.value.trim()) void useKey(field.current!.value, keep.current!.checked);
  };
  return (
    <form class="gate key-form" onSubmit={submit}>
      <label for="key"><strong>{refused ? 'The server did not take this API key.' : 'This server asks for an API key.'}</strong></label>
      <div class="key-row">
        <input id="key" ref={field} type="password" autocomplete="current-password" placeholder="API key" aria-invalid={refused} />
        <button class="button primary">Use</button>
      </div>
      <label class="keep"><input type="checkbox" ref={keep} defaultChecked />Keep it in this browser</label>
    </form>
  );
}
