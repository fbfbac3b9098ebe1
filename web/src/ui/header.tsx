// The bar above the conversation: its name, and how fast and how full it is.
import { model } from '../state/connection';
import { runs } from '../state/generation';
import { sidebarOpen, theme, type Theme } from '../state/preferences';
import type { AssistantMessage, Conversation } from '../state/types';
import { decodeRate, number, percent } from './format';
import { IconButton, type IconName } from './icons';

const nextTheme: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };
const themeIcon: Record<Theme, IconName> = { system: 'system', light: 'sun', dark: 'moon' };

export function Header({ conversation, openSettings }: { conversation: Conversation; openSettings: () => void }) {
  return (
    <header class="header">
      <IconButton icon="menu" label="Conversations" expanded={sidebarOpen.value} onClick={() => (sidebarOpen.value = !sidebarOpen.value)} />
      <h1 class="title">{conversation.title || model.value?.id || 'slipstream'}</h1>
      <Meter conversation={conversation} />
      <IconButton icon={themeIcon[theme.value]} label={`Theme: ${theme.value}`} class="theme" onClick={() => (theme.value = nextTheme[theme.value])} />
      <IconButton icon="settings" label="Settings" onClick={openSettings} />
    </header>
  );
}

const lastAnswer = (conversation: Conversation): AssistantMessage | undefined =>
  conversation.messages.findLast((message): message is AssistantMessage => message.role === 'assistant' && message.stats !== null);

function Meter({ conversation }: { conversation: Conversation }) {
  const run = runs.value.get(conversation.id);
  const stats = lastAnswer(conversation)?.stats;
  const speed = run ? run.rate : stats ? decodeRate(stats) : 0;
  const context = model.value?.context ?? null;
  const used = stats ? stats.promptTokens + stats.tokens : 0;
  return (
    <div class="meter" role="group" aria-label="Speed and context use">
      {run && run.prompt !== null && <span>reading {percent(run.prompt, 1)}</span>}
      {speed > 0 && <span class="speed"><b>{number(speed)}</b> tok/s</span>}
      {stats && stats.drafted > 0 && <span class="drafts" title="Share of the drafted tokens that the model accepted"><b>{percent(stats.accepted, stats.drafted)}</b> drafts</span>}
      {context !== null && used > 0 && <ContextUse used={used} context={context} />}
    </div>
  );
}

function ContextUse({ used, context }: { used: number; context: number }) {
  const label = `${number(used)} of ${number(context)} tokens of context used`;
  return (
    <span class={`context ${used > 0.9 * context ? 'nearly-full' : ''}`} title={label}>
      <meter min={0} max={context} value={Math.min(used, context)} aria-label={label} />
      <span>{percent(used, context)} context</span>
    </span>
  );
}
