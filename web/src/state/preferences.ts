// Small things remembered across conversations: theme, API key, the settings a new chat starts with.
import { effect, signal } from '@preact/signals';
import { defaultSettings, type Settings } from './types';

export type Theme = 'system' | 'light' | 'dark';

function recall(name: string): string | null {
  try {
    return localStorage.getItem(`slipstream.${name}`) ?? sessionStorage.getItem(`slipstream.${name}`);
  } catch {
    return null; // storage is switched off
  }
}

function remember(name: string, value: string, where: 'localStorage' | 'sessionStorage' = 'localStorage'): void {
  try {
    sessionStorage.removeItem(`slipstream.${name}`);
    localStorage.removeItem(`slipstream.${name}`);
    window[where].setItem(`slipstream.${name}`, value);
  } catch {
    // Works without, until the page is closed.
  }
}

export const theme = signal<Theme>((recall('theme') as Theme | null) ?? 'system');
effect(() => {
  document.documentElement.dataset.theme = theme.value;
  remember('theme', theme.value);
});

// Where the list of conversations covers the page instead of standing beside it.
export const narrow = window.matchMedia('(max-width: 56rem)');
export const sidebarOpen = signal(!narrow.matches);

export const apiKey = signal(recall('key') ?? '');
export function setApiKey(key: string, keep: boolean): void {
  apiKey.value = key;
  remember('key', key, keep ? 'localStorage' : 'sessionStorage');
}

export function lastSettings(): Settings {
  try {
    return { ...defaultSettings, ...(JSON.parse(recall('settings') ?? '{}') as Partial<Settings>) };
  } catch {
    return defaultSettings;
  }
}
export const rememberSettings = (settings: Settings): void => remember('settings', JSON.stringify(settings));
