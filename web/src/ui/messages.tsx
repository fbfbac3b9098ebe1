// The conversation. It stays at its end while an answer grows, unless the reader has scrolled up.
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { Conversation, Message } from '../state/types';
import { IconButton } from './icons';
import { MessageView } from './message';

const nearEnd = 80; // pixels

export function Messages({ conversation }: { conversation: Conversation }) {
  const box = useRef<HTMLDivElement>(null);
  const following = useSignal(true);
  const { id, messages } = conversation;

  const onScroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = box.current!;
    following.value = scrollHeight - scrollTop - clientHeight < nearEnd;
  };
  const toEnd = () => {
    following.value = true;
    box.current!.scrollTop = box.current!.scrollHeight;
  };

  // Another conversation or a new question: go to the end. A growing answer: stay there.
  useLayoutEffect(toEnd, [id, messages.length]);
  useLayoutEffect(() => {
    if (following.peek()) toEnd();
  }, [messages]);

  return (
    <div class="messages" ref={box} onScroll={onScroll}>
      <div class="column" role="log" aria-label="Conversation" aria-live="off">
        {messages.map((message, index) => (
          <Row key={message.id} conversation={id} message={message} last={index === messages.length - 1} />
        ))}
      </div>
      {!following.value && <IconButton icon="down" label="Go to the end" class="to-end" onClick={toEnd} />}
    </div>
  );
}

// Messages that did not change are not looked at again.
function Row({ conversation, message, last }: { conversation: string; message: Message; last: boolean }) {
  return useMemo(() => <MessageView conversation={conversation} message={message} last={last} />, [conversation, message, last]);
}
