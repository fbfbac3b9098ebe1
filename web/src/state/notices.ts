// Short messages at the foot of the page that go away by themselves.
import { signal } from '@preact/signals';

export const notice = signal<string | null>(null);
let timer = 0;

export function notify(text: string): void {
  notice.value = text;
  clearTimeout(timer);
  timer = window.setTimeout(() => (notice.value = null), 6000);
}
