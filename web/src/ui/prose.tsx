// An answer's Markdown.
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { type Block, blocksOf, renderBlock } from '../markdown/markdown';
import { copyText } from './clipboard';

export function Prose({ text }: { text: string }) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  return (
    <div class="prose" onClick={onClick}>
      {blocks.map((block, index) => <ProseBlock key={index} block={block} />)}
    </div>
  );
}

function ProseBlock({ block }: { block: Block }) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => element.current?.replaceChildren(renderBlock(block.token)), [block.look]);
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
