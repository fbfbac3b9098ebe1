// One message: a question that can be edited, or an answer with its thinking, tools and figures.
import { useEffect, useRef, useState } from 'preact/hooks';
import { adviceFor } from '../api/errors';
import { edit, regenerate } from '../state/generation';
import type { AssistantMessage, Message, UserMessage } from '../state/types';
import { copyText } from './clipboard';
import { details, summary } from './format';
import { IconButton } from './icons';
import { Prose } from './prose';
import { Thinking } from './thinking';
import { ToolCallView } from './tool_call';

interface Props<M extends Message> {
  conversation: string;
  message: M;
  last: boolean;
}

export function MessageView({ message, ...rest }: Props<Message>) {
  return message.role === 'user' ? <Question message={message} {...rest} /> : <Answer message={message} {...rest} />;
}

function CopyButton({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    if (!(await copyText(text))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return <IconButton icon={copied ? 'check' : 'copy'} label={copied ? 'Copied' : label} onClick={() => void copy()} />;
}

function Question({ conversation, message }: Props<UserMessage>) {
  const [editing, setEditing] = useState(false);
  if (editing) return <Editor conversation={conversation} message={message} done={() => setEditing(false)} />;
  return (
    <article class="message question" aria-label="You">
      <div class="question-text">{message.content}</div>
      <div class="actions">
        <IconButton icon="edit" label="Edit message" onClick={() => setEditing(true)} />
        <CopyButton text={message.content} label="Copy message" />
      </div>
    </article>
  );
}

function Editor({ conversation, message, done }: { conversation: string; message: UserMessage; done: () => void }) {
  const [text, setText] = useState(message.content);
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => area.current?.focus(), []);
  const submit = () => {
    if (!text.trim()) return;
    done();
    edit(conversation, message.id, text.trim());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') {
      event.stopPropagation();
      done();
    } else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      submit();
    }
  };
  return (
    <article class="message question editing" aria-label="Edit your message">
      <textarea ref={area} class="edit-area" aria-label="Message" value={text} rows={Math.min(12, text.split('\n').length + 1)}
        onInput={(event) => setText(event.currentTarget.value)} onKeyDown={onKeyDown} />
      <div class="edit-actions">
        <span class="hint">What follows is answered anew.</span>
        <button type="button" class="button" onClick={done}>Cancel</button>
        <button type="button" class="button primary" onClick={submit} disabled={!text.trim()}>Send</button>
      </div>
    </article>
  );
}

function Answer({ conversation, message, last }: Props<AssistantMessage>) {
  const running = message.end === 'running';
  const empty = !message.content && !message.reasoning && message.toolCalls.length === 0;
  return (
    <article class={`message answer ${running ? 'running' : ''}`} aria-label="Answer" aria-busy={running}>
      {message.reasoning && <Thinking text={message.reasoning} ms={message.reasoningMs} running={running} />}
      {message.content && <Prose text={message.content} />}
      {message.toolCalls.map((call, index) => <ToolCallView key={index} call={call} />)}
      {running && empty && <span class="waiting" role="status" aria-label="Waiting for the answer"><i /><i /><i /></span>}
      {!running && <Ending message={message} empty={empty} retry={() => regenerate(conversation)} />}
      {!running && (
        <div class="actions">
          {message.content && <CopyButton text={message.content} label="Copy answer" />}
          {last && !message.failure && <IconButton icon="again" label="Regenerate answer" onClick={() => regenerate(conversation)} />}
          {message.stats && <span class="figures" title={details(message.stats)}>{summary(message.stats).join(' · ')}</span>}
        </div>
      )}
    </article>
  );
}

function Ending({ message, empty, retry }: { message: AssistantMessage; empty: boolean; retry: () => void }) {
  if (message.failure) {
    return (
      <div class="failure" role="alert">
        <p><strong>{message.failure.message}</strong></p>
        <p>{adviceFor(message.failure.kind)}</p>
        <button type="button" class="button" onClick={retry}>Try again</button>
      </div>
    );
  }
  if (message.end === 'length') return <p class="remark">Cut off: the limit for answers or the context was reached.</p>;
  if (message.end === 'stopped') return <p class="remark">Stopped{empty ? ' before the first word' : ''}.</p>;
  return empty ? <p class="remark">The model ended without an answer.</p> : null;
}
