// Thinking, folded away. Its text is put on the page only while it is open.
import { useEffect, useRef, useState } from 'preact/hooks';
import { duration } from './format';

interface Props {
  text: string;
  ms: number | null; // null: goes on
  running: boolean;
}

export function Thinking({ text, ms, running }: Props) {
  const [open, setOpen] = useState(false);
  const thinkingNow = running && ms === null;
  const seconds = useSeconds(thinkingNow);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (thinkingNow && open && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text, open, thinkingNow]);

  return (
    <details class={`thinking ${thinkingNow ? 'now' : ''}`} open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{thinkingNow ? `Thinking… ${seconds} s` : ms === null ? 'Thought' : `Thought for ${duration(ms)}`}</summary>
      {open && <div class="thinking-text" ref={box} tabIndex={0}>{text.trim()}</div>}
    </details>
  );
}

function useSeconds(running: boolean): number {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    if (!running) return undefined;
    const since = performance.now();
    const timer = setInterval(() => setSeconds(Math.floor((performance.now() - since) / 1000)), 250);
    return () => clearInterval(timer);
  }, [running]);
  return seconds;
}
