import type { Stats } from '../state/types';

export function rate(tokens: number, ms: number): number {
  return ms > 0 ? (1000 * tokens) / ms : 0;
}

export const number = (value: number): string =>
  value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString('en') : value.toPrecision(2);

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

export const percent = (part: number, whole: number): string => `${Math.round((100 * part) / whole)} %`;

export const decodeRate = (stats: Stats): number => rate(stats.tokens, stats.decodeMs);

// The short line below an answer.
export function summary(stats: Stats): string[] {
  const parts = [`${number(stats.tokens)} tokens`];
  if (stats.decodeMs > 0) parts.push(`${number(decodeRate(stats))} tok/s`);
  if (stats.drafted > 0) parts.push(`${percent(stats.accepted, stats.drafted)} of drafts accepted`);
  return parts;
}

// All of it, for the tooltip.
export function details(stats: Stats): string {
  const cached = stats.cachedTokens > 0 ? `, ${number(stats.cachedTokens)} remembered` : '';
  const drafts = stats.drafted > 0 ? `\nDrafts: ${number(stats.accepted)} of ${number(stats.drafted)} tokens accepted` : '';
  return `Prompt: ${number(stats.promptTokens)} tokens${cached}, ${duration(stats.promptMs)}\n` +
    `Answer: ${number(stats.tokens)} tokens, ${duration(stats.decodeMs)}${drafts}`;
}
