// Where questions are written.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { connection } from '../state/connection';
import { setSettings } from '../state/conversations';
import { runs, send, stop } from '../state/generation';
import type { Conversation } from '../state/types';
import { Icon } from './icons';

const touch = window.matchMedia('(pointer: coarse)');

export function Composer({ conversation }: { conversation: Conversation }) {
  const [text, setText] = useState('');
  const area = useRef<HTMLTextAreaElement>(null);
  const running = runs.value.has(conversation.id);

  // A keyboard that covers half the screen should come only when asked for.
  useEffect(() => {
    if (!touch.matches) area.current?.focus();
  }, [conversation.id]);
  useLayoutEffect(() => fitHeight(area.current!), [text]);

  const submit = () => {
    if (!text.trim() || running) return;
    send(conversation.id, text.trim());
    setText('');
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // On a phone, Enter makes a new line, as everywhere there.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || touch.matches) return;
    event.preventDefault();
    submit();
  };
  const { settings } = conversation;
  const toggleThinking = () => setSettings(conversation.id, { ...settings, thinking: !settings.thinking });

  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); submit(); }}>
      <textarea ref={area} id="question" rows={1} value={text} placeholder={placeholder()} aria-label="Your message"
        onInput={(event) => setText(event.currentTarget.value)} onKeyDown={onKeyDown} enterkeyhint="enter" />
      <div class="composer-bar">
        <button type="button" class="pill" role="switch" aria-checked={settings.thinking} onClick={toggleThinking}
          title="Let the model think before it answers">Think</button>
        <span class="composer-hint">Enter sends, Shift+Enter makes a new line</span>
        {running
          ? <button type="button" class="round" aria-label="Stop the answer" title="Stop (Esc)" onClick={() => stop(conversation.id)}><Icon name="stop" /></button>
          : <button type="submit" class="round" aria-label="Send" title="Send (Enter)" disabled={!text.trim()}><Icon name="send" /></button>}
      </div>
    </form>
  );
}

function placeholder(): string {
  return connection.value.state === 'loading' ? 'Write already; it is sent when the model is ready' : 'Ask something';
}

function fitHeight(area: HTMLTextAreaElement): void {
  area.style.height = 'auto';
  area.style.height = `${area.scrollHeight}px`;
}
