// What the model wanted to have called. The page has no tools of its own: it shows, it does not call.
import type { ToolCall } from '../state/types';
import { Icon } from './icons';

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json; // not whole yet
  }
}

export const ToolCallView = ({ call }: { call: ToolCall }) => (
  <section class="tool-call" aria-label={`Tool call ${call.name}`}>
    <header><Icon name="tool" /><code>{call.name}</code></header>
    {call.arguments && <pre tabIndex={0}>{pretty(call.arguments)}</pre>}
  </section>
);
