import { useEffect, useState } from 'preact/hooks';
import { connection, model } from '../state/connection';
import { current, startNew } from '../state/conversations';
import { stop } from '../state/generation';
import { notice } from '../state/notices';
import { narrow, sidebarOpen } from '../state/preferences';
import type { Conversation } from '../state/types';
import { Composer } from './composer';
import { number } from './format';
import { Gate } from './gate';
import { Header } from './header';
import { Icon } from './icons';
import { Messages } from './messages';
import { SettingsDialog } from './settings';
import { Sidebar } from './sidebar';

export function App() {
  const [settingsOpen, setSettingsOpen] = useState(false);
  useEffect(() => {
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, []);
  const conversation = current.value;
  const empty = conversation.messages.length === 0;
  return (
    <div class={`app ${sidebarOpen.value ? 'with-sidebar' : ''}`}>
      <Sidebar />
      <main class={empty ? 'empty' : ''}>
        <Header conversation={conversation} openSettings={() => setSettingsOpen(true)} />
        {empty ? <Welcome /> : <Messages conversation={conversation} />}
        <div class="foot">
          <Gate />
          <Composer conversation={conversation} />
        </div>
      </main>
      {settingsOpen && <SettingsDialog conversation={conversation} close={() => setSettingsOpen(false)} />}
      <div class="notice" role="status" hidden={!notice.value}>{notice.value}</div>
      <div class="offscreen" role="status">{announcement(conversation)}</div>
    </div>
  );
}

function onKeyDown(event: KeyboardEvent): void {
  const typing = (event.target as Element).matches('input, textarea');
  if (event.key === 'Escape' && !document.querySelector('dialog[open]')) {
    if (narrow.matches && sidebarOpen.peek()) sidebarOpen.value = false;
    else stop(current.peek().id);
  } else if (event.key.toLowerCase() === 'o' && event.shiftKey && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    startNew();
  } else if (event.key === '/' && !typing) {
    event.preventDefault();
    document.getElementById('question')?.focus();
  }
}

function Welcome() {
  const info = model.value;
  return (
    <div class="welcome">
      <Icon name="mark" />
      {info && <p class="model-name">{info.id}</p>}
      {info?.context && <p class="hint">{number(info.context)} tokens of context</p>}
      {connection.value.state === 'connecting' && <p class="hint">Looking for the server…</p>}
    </div>
  );
}

// For screen readers: an answer is read when it is there, not word by word.
function announcement(conversation: Conversation): string {
  const last = conversation.messages.at(-1);
  if (last?.role !== 'assistant') return '';
  return last.end === 'running' ? 'Answering' : 'Answer ready';
}
