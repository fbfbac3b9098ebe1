// The list of conversations and the open ones. The address says which is shown (#/ID), so that
// reload, back and bookmarks work.
import { computed, effect, signal, type Signal } from '@preact/signals';
import * as database from './database';
import { notify } from './notices';
import { lastSettings, rememberSettings } from './preferences';
import { newId, type Conversation, type Settings, type Summary } from './types';

export const summaries = signal<Summary[]>([]);
const opened = new Map<string, Signal<Conversation>>();
const shown = signal<Signal<Conversation>>(signal(blank()));
export const current = computed(() => shown.value.value);

function blank(): Conversation {
  const now = Date.now();
  return { id: newId(), title: '', created: now, updated: now, settings: lastSettings(), messages: [] };
}

const idInAddress = (): string => location.hash.replace(/^#\/?/, '');

export async function start(): Promise<void> {
  try {
    const all = await database.readAll();
    summaries.value = all.map(({ id, title, updated }) => ({ id, title, updated })).sort((a, b) => b.updated - a.updated);
  } catch {
    notify('This browser keeps nothing for this page: conversations are lost when it is closed.');
  }
  window.addEventListener('hashchange', () => void showAddressed());
  await showAddressed();
}

async function showAddressed(): Promise<void> {
  const id = idInAddress();
  if (id === shown.value.peek().id) return;
  const conversation = id ? await open(id) : null;
  shown.value = conversation ?? signal(blank());
  if (id && !conversation) history.replaceState(null, '', location.pathname);
}

async function open(id: string): Promise<Signal<Conversation> | null> {
  const already = opened.get(id);
  if (already) return already;
  const read = await database.read(id).catch(() => undefined);
  if (!read) return null;
  const conversation = signal(withoutRunning(read));
  opened.set(id, conversation);
  return conversation;
}

// An answer that was being made when the page was closed has ended there.
function withoutRunning(conversation: Conversation): Conversation {
  const messages = conversation.messages.map((message) =>
    message.role === 'assistant' && message.end === 'running' ? { ...message, end: 'stopped' as const } : message);
  return { ...conversation, messages };
}

export function select(id: string): void {
  location.hash = `#/${id}`;
}

export function startNew(): void {
  if (idInAddress()) history.pushState(null, '', location.pathname);
  shown.value = signal(blank());
}

// A new conversation is shown before it is among the opened ones.
const holderOf = (id: string): Signal<Conversation> | undefined =>
  opened.get(id) ?? (shown.peek().peek().id === id ? shown.peek() : undefined);

export const find = (id: string): Conversation | undefined => holderOf(id)?.peek();

export function update(id: string, change: (conversation: Conversation) => Conversation): void {
  const holder = holderOf(id);
  if (!holder) return; // deleted meanwhile
  holder.value = change(holder.peek());
  if (holder.peek().messages.length === 0) return; // nothing worth keeping yet
  if (!opened.has(id)) {
    opened.set(id, holder);
    if (shown.peek() === holder) history.replaceState(null, '', `#/${id}`);
  }
  list(holder.peek());
  saveSoon(id);
}

function list({ id, title, updated }: Conversation): void {
  const known = summaries.peek().find((summary) => summary.id === id);
  if (known && known.title === title && known.updated === updated) return;
  const others = summaries.peek().filter((summary) => summary.id !== id);
  summaries.value = [{ id, title, updated }, ...others].sort((a, b) => b.updated - a.updated);
}

export function setSettings(id: string, settings: Settings): void {
  rememberSettings(settings);
  update(id, (conversation) => ({ ...conversation, settings }));
}

export async function rename(id: string, title: string): Promise<void> {
  await open(id);
  update(id, (conversation) => ({ ...conversation, title }));
}

export async function remove(id: string): Promise<void> {
  opened.delete(id);
  unsaved.delete(id);
  summaries.value = summaries.peek().filter((summary) => summary.id !== id);
  if (shown.peek().peek().id === id) startNew();
  await database.erase(id).catch(() => {});
}

export async function load(id: string): Promise<Conversation | undefined> {
  return (await open(id))?.peek();
}

// Writing is cheap but not free: at most twice a second, and at once when the page goes away.
const unsaved = new Set<string>();
let saving = 0;

function saveSoon(id: string): void {
  unsaved.add(id);
  saving ||= window.setTimeout(saveNow, 500);
}

export function saveNow(): void {
  clearTimeout(saving);
  saving = 0;
  for (const id of unsaved) {
    const conversation = opened.get(id)?.peek();
    if (conversation) database.write(conversation).catch(() => notify('The conversation could not be saved in this browser.'));
  }
  unsaved.clear();
}
document.addEventListener('visibilitychange', () => document.hidden && saveNow());
window.addEventListener('pagehide', saveNow);

effect(() => {
  document.title = current.value.title ? `${current.value.title} · slipstream` : 'slipstream';
});
