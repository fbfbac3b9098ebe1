// An answer's Markdown.
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { Token } from 'marked';
import { blocksOf, renderBlock } from '../markdown/markdown';
import { copyText } from './clipboard';

export function Prose({ text }: { text: string }) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  return (
    <div class="prose" onClick={onClick}>
      {blocks.map((token, index) => <Block key={index} token={token} />)}
    </div>
  );
}

function Block({ token }: { token: Token }) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => element.current?.replaceChildren(renderBlock(token)), [token.raw]);
  return <div class="block" ref={element} />;
}

function onClick(event: MouseEvent): void {
  const button = (event.target as Element).closest<HTMLButtonElement>('button.copy-code');
  const code = button?.closest('.code-block')?.querySelector('pre');
  if (!button || !code) return;
  void copyText((code.textContent ?? '').replace(/\n$/, '')).then((copied) => {
    if (!copied) return;
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = 'Copy'), 1500);
  });
}
