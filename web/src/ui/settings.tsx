// System prompt and sampling of the conversation that is shown; a new one starts with the same.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Defaults } from '../api/server';
import { askForKey, model } from '../state/connection';
import { setSettings } from '../state/conversations';
import { apiKey } from '../state/preferences';
import { defaultSettings, type Conversation, type Settings } from '../state/types';
import { number } from './format';
import { IconButton } from './icons';

type NumberName = 'temperature' | 'topP' | 'topK' | 'maxTokens';

const numbers: { name: NumberName; field?: keyof Defaults; label: string; hint: string; min: number; max?: number; step: number }[] = [
  { name: 'temperature', field: 'temperature', label: 'Temperature', hint: '0 always takes the likeliest word; higher is freer', min: 0, max: 2, step: 0.05 },
  { name: 'topP', field: 'top_p', label: 'Top p', hint: 'only the likeliest words that together have this probability', min: 0.01, max: 1, step: 0.01 },
  { name: 'topK', field: 'top_k', label: 'Top k', hint: 'only this many of the likeliest words; 0 is all', min: 0, step: 1 },
  { name: 'maxTokens', label: 'Answer limit', hint: 'in tokens, thinking included', min: 1, step: 1 },
];

export function SettingsDialog({ conversation, close }: { conversation: Conversation; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const { settings } = conversation;
  const change = (part: Partial<Settings>) => setSettings(conversation.id, { ...settings, ...part });
  const closeOnBackdrop = (event: MouseEvent) => {
    if (event.target === dialog.current) dialog.current?.close();
  };

  return (
    <dialog class="settings" ref={dialog} onClose={close} onClick={closeOnBackdrop} aria-labelledby="settings-title">
      <div class="settings-body">
        <header><h2 id="settings-title">Settings</h2><IconButton icon="close" label="Close settings" onClick={() => dialog.current?.close()} /></header>
        <Field label="System prompt" hint="what the model should be and how it should answer">
          <textarea rows={4} value={settings.systemPrompt} placeholder="None" onInput={(event) => change({ systemPrompt: event.currentTarget.value })} />
        </Field>
        <label class="switch-row">
          <span>Think before answering</span>
          <input type="checkbox" role="switch" checked={settings.thinking} onChange={(event) => change({ thinking: event.currentTarget.checked })} />
        </label>
        <div class="numbers">
          {numbers.map(({ name, field, label, hint, ...range }) => (
            <Field key={name} label={label} hint={hint}>
              <input type="number" inputMode="decimal" value={settings[name] ?? ''} placeholder={defaultOf(field)} {...range}
                onChange={(event) => change({ [name]: readNumber(event.currentTarget) })} />
            </Field>
          ))}
        </div>
        <footer>
          <span class="hint">{serverLine()}</span>
          {apiKey.value && <button type="button" class="button" onClick={() => { dialog.current?.close(); askForKey(); }}>Change API key</button>}
          <button type="button" class="button" onClick={() => change(defaultSettings)}>Reset</button>
        </footer>
      </div>
    </dialog>
  );
}

// Outside its range a number goes to the nearest end; nothing is the default.
function readNumber(input: HTMLInputElement): number | null {
  if (input.value === '' || Number.isNaN(input.valueAsNumber)) return null;
  const max = input.max === '' ? Infinity : Number(input.max);
  const value = Math.min(Math.max(input.valueAsNumber, Number(input.min)), max);
  return input.step === '1' ? Math.round(value) : value;
}

function defaultOf(field: keyof Defaults | undefined): string {
  const value = field && model.value?.defaults[field];
  if (!field) return 'none';
  return value === undefined ? 'the model’s own' : `${Number(value.toPrecision(3))}, the model’s own`;
}

function serverLine(): string {
  if (!model.value) return '';
  return model.value.id + (model.value.context ? ` · ${number(model.value.context)} tokens of context` : '');
}

const Field = ({ label, hint, children }: { label: string; hint: string; children: ComponentChildren }) => (
  <label class="field"><span class="field-name">{label}</span><span class="hint">{hint}</span>{children}</label>
);
