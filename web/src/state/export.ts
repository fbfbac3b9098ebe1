// Conversations as files.
import type { Conversation } from './types';

export function toMarkdown({ title, created, settings, messages }: Conversation): string {
  const parts = [`# ${title}`, `_${new Date(created).toLocaleString()}_`];
  if (settings.systemPrompt.trim()) parts.push('## System', settings.systemPrompt.trim());
  for (const message of messages) {
    parts.push(message.role === 'user' ? '## You' : '## Assistant');
    if (message.role === 'assistant') {
      if (message.reasoning.trim()) parts.push(quote(message.reasoning.trim()));
      for (const call of message.toolCalls) parts.push(`\`${call.name}\``, '```json\n' + call.arguments + '\n```');
    }
    if (message.content.trim()) parts.push(message.content.trim());
  }
  return parts.join('\n\n') + '\n';
}

const quote = (text: string): string => text.split('\n').map((line) => `> ${line}`.trimEnd()).join('\n');

const fileName = (title: string): string => title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '') || 'conversation';

export function download(conversation: Conversation, format: 'json' | 'md'): void {
  const text = format === 'json' ? JSON.stringify(conversation, null, 2) : toMarkdown(conversation);
  const type = format === 'json' ? 'application/json' : 'text/markdown';
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = `${fileName(conversation.title)}.${format}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
