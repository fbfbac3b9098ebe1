// POST /v1/messages and /v1/messages/count_tokens
import { badRequest, EventStream, newId, pause, sendJson } from './http.mjs';
import { checkModel, countTokens, joined, model, plan, reasoningTokens } from './generate.mjs';

const stopReasons = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use' };

function messagesOf({ system, messages }) {
  if (!Array.isArray(messages) || messages.length === 0) throw badRequest('messages: must be a list that is not empty');
  // Claude Code puts a line that is different every time before the prompt proper.
  const blocks = typeof system === 'string' ? [system] : (system ?? []).map((block) => block.text);
  const top = blocks.filter((text) => !text.startsWith('x-anthropic-billing-header:')).join('\n');
  return top ? [{ role: 'system', content: top }, ...messages] : messages;
}

const toolsOf = ({ tools }) => tools?.map(({ name, input_schema }) => ({ name, parameters: input_schema }));

function planned(body) {
  checkModel(body.model);
  if (!Number.isInteger(body.max_tokens) || body.max_tokens < 1) throw badRequest('max_tokens: required, a whole number above 0');
  const choice = { auto: undefined, any: 'required', none: 'none' };
  return plan({
    messages: messagesOf(body),
    tools: toolsOf(body),
    toolChoice: body.tool_choice?.type === 'tool' ? { name: body.tool_choice.name } : choice[body.tool_choice?.type ?? 'auto'],
    thinking: body.thinking?.type === 'enabled', maxTokens: body.max_tokens, stop: body.stop_sequences, endless: body.ignore_eos,
  });
}

function blocksOf(answer) {
  const blocks = [];
  if (reasoningTokens(answer) > 0) blocks.push({ type: 'thinking', thinking: joined(answer, 'reasoning'), signature: 'none' });
  if (joined(answer, 'content')) blocks.push({ type: 'text', text: joined(answer, 'content') });
  const call = answer.list.find((piece) => piece.kind === 'call');
  if (call) blocks.push({ type: 'tool_use', id: newId('toolu_'), name: call.name, input: answer.end === 'length' ? {} : JSON.parse(joined(answer, 'arguments')) });
  return blocks;
}

export const countMessageTokens = (body, response) =>
  sendJson(response, 200, { input_tokens: countTokens(messagesOf(body), toolsOf(body)) });

export async function messages(body, response, { delay, flaw }) {
  const answer = planned(body);
  const stop = { stop_reason: answer.stopString === null ? stopReasons[answer.end] : 'stop_sequence', stop_sequence: answer.stopString };
  const usage = { input_tokens: answer.promptTokens - answer.cachedTokens, output_tokens: answer.list.length, cache_read_input_tokens: answer.cachedTokens, cache_creation_input_tokens: 0 };
  const message = { id: newId('msg_'), type: 'message', role: 'assistant', model, content: blocksOf(answer), ...stop, usage };
  if (!body.stream) return sendJson(response, 200, message);

  const events = new EventStream(response);
  const send = (type, fields = {}) => (flaw === 'no-event-names' ? events.data({ type, ...fields }) : events.named(type, { type, ...fields }));
  send('message_start', { message: { ...message, content: [], stop_reason: null, stop_sequence: null, usage: { ...usage, output_tokens: 0 } } });
  for (const [index, block] of message.content.entries()) {
    const empty = { thinking: { type: 'thinking', thinking: '', signature: '' }, text: { type: 'text', text: '' }, tool_use: { ...block, input: {} } }[block.type];
    send('content_block_start', { index, content_block: empty });
    const kind = { thinking: 'reasoning', text: 'content', tool_use: 'arguments' }[block.type];
    for (const { text } of answer.list.filter((piece) => piece.kind === kind)) {
      await pause(answer.delay ?? delay);
      if (events.gone) return;
      const delta = { thinking: { type: 'thinking_delta', thinking: text }, text: { type: 'text_delta', text }, tool_use: { type: 'input_json_delta', partial_json: text } }[block.type];
      send('content_block_delta', { index, delta });
    }
    if (block.type === 'thinking') send('content_block_delta', { index, delta: { type: 'signature_delta', signature: block.signature } });
    send('content_block_stop', { index });
  }
  send('message_delta', { delta: stop, usage });
  send('message_stop');
  events.end();
}
