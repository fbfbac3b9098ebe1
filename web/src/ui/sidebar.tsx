// The list of conversations.
import { useEffect, useRef, useState } from 'preact/hooks';
import { current, load, remove, rename, select, startNew, summaries } from '../state/conversations';
import { download } from '../state/export';
import { runs, stop } from '../state/generation';
import { narrow, sidebarOpen } from '../state/preferences';
import type { Summary } from '../state/types';
import { Icon } from './icons';

const closeIfNarrow = () => {
  if (narrow.matches) sidebarOpen.value = false;
};

export function Sidebar() {
  const groups = groupByAge(summaries.value);
  return (
    <>
      <nav class="sidebar" aria-label="Conversations" hidden={!sidebarOpen.value}>
        <div class="brand"><Icon name="mark" /><span>slipstream</span></div>
        <button type="button" class="new-chat" onClick={() => { startNew(); closeIfNarrow(); }}>
          <Icon name="plus" />New conversation
        </button>
        <div class="list">
          {groups.map(([name, items]) => (
            <section key={name}>
              <h2>{name}</h2>
              <ul>{items.map((item) => <Item key={item.id} item={item} />)}</ul>
            </section>
          ))}
          {groups.length === 0 && <p class="hint">Conversations stay in this browser.</p>}
        </div>
      </nav>
      {sidebarOpen.value && <div class="scrim" onClick={() => (sidebarOpen.value = false)} />}
    </>
  );
}

function groupByAge(items: Summary[]): [string, Summary[]][] {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const day = 86_400_000;
  const nameOf = ({ updated }: Summary) =>
    updated >= midnight ? 'Today' : updated >= midnight - day ? 'Yesterday' : updated >= midnight - 7 * day ? 'This week' : 'Earlier';
  return [...Map.groupBy(items, nameOf)];
}

function Item({ item }: { item: Summary }) {
  const [renaming, setRenaming] = useState(false);
  const menu = useRef<HTMLDetailsElement>(null);
  const act = (action: () => unknown) => () => {
    menu.current!.open = false;
    void action();
  };
  const exportAs = (format: 'json' | 'md') => async () => {
    const conversation = await load(item.id);
    if (conversation) download(conversation, format);
  };
  const removeAfterAsking = () => {
    if (!confirm(`Delete “${item.title}”? This cannot be undone.`)) return;
    stop(item.id);
    void remove(item.id);
  };
  if (renaming) return <li><Rename item={item} done={() => setRenaming(false)} /></li>;
  const shown = current.value.id === item.id;
  return (
    <li class={shown ? 'shown' : ''}>
      <button type="button" class="open" aria-current={shown ? 'page' : undefined} onClick={() => { select(item.id); closeIfNarrow(); }}
        onDblClick={() => setRenaming(true)} title={item.title}>
        {runs.value.has(item.id) && <span class="busy" aria-label="answering" />}{item.title}
      </button>
      <details class="menu" ref={menu} onBlur={closeWhenLeft}>
        <summary aria-label={`Actions for ${item.title}`}>⋯</summary>
        <div class="menu-items">
          <button type="button" onClick={act(() => setRenaming(true))}><Icon name="edit" />Rename</button>
          <button type="button" onClick={act(exportAs('md'))}><Icon name="export" />Export as Markdown</button>
          <button type="button" onClick={act(exportAs('json'))}><Icon name="export" />Export as JSON</button>
          <button type="button" class="danger" onClick={act(removeAfterAsking)}><Icon name="remove" />Delete</button>
        </div>
      </details>
    </li>
  );
}

function closeWhenLeft(event: FocusEvent): void {
  const menu = event.currentTarget as HTMLDetailsElement;
  if (!menu.contains(event.relatedTarget as Node | null)) menu.open = false;
}

function Rename({ item, done }: { item: Summary; done: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), []);
  const keep = () => {
    const title = field.current!.value.trim();
    if (title) void rename(item.id, title);
    done();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === 'Escape') field.current!.value = item.title;
    if (event.key === 'Enter' || event.key === 'Escape') field.current!.blur();
  };
  return <input ref={field} class="rename" aria-label="New name" defaultValue={item.title} onKeyDown={onKeyDown} onBlur={keep} />;
}

