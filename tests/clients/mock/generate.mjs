// One answer, whatever API asked for it: pieces of thinking, text and tool calls, and how it ended.
import { answerFor, tokensOf } from './answers.mjs';
import { badRequest, Refusal } from './http.mjs';
import { exampleOf } from './schema.mjs';

export const model = 'mock';
export const context = 4096;

const textOf = (content) => (typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join(''));

const promptOf = (messages, tools) => messages.map((message) => textOf(message.content)).join(' ') + (tools?.length ? JSON.stringify(tools) : '');
export const countTokens = (messages, tools) => tokensOf(promptOf(messages, tools)).length + 4 * messages.length;

const remembered = new Set();

export function checkModel(name) {
  if (name !== model && name !== 'default') {
    throw new Refusal(404, 'not_found_error', `The model '${name}' does not exist; served here: ${model}`, { param: 'model', code: 'model_not_found' });
  }
}

// wanted: {messages, tools, toolChoice, format, thinking, maxTokens, stop, endless}
export function plan(wanted) {
  const promptTokens = countTokens(wanted.messages, wanted.tools);
  if (promptTokens + (wanted.maxTokens ?? 0) > context) {
    const error = badRequest(
      `This model's maximum context length is ${context} tokens. However, you requested ${promptTokens + (wanted.maxTokens ?? 0)} tokens.`,
      'messages', 'context_length_exceeded');
    Object.assign(error.more, { n_prompt_tokens: promptTokens, n_ctx: context });
    throw error;
  }
  const pieces = piecesOf(wanted);
  const prompt = promptOf(wanted.messages, wanted.tools);
  const cachedTokens = remembered.has(prompt) ? promptTokens - 1 : 0;
  remembered.add(prompt);
  const limit = wanted.maxTokens ?? Infinity;
  const cut = pieces.list.slice(0, limit);
  const ended = cut.length < pieces.list.length ? 'length' : pieces.end;
  return { ...pieces, list: cut, end: ended, stopString: ended === 'stop' ? pieces.stopString : null, promptTokens, cachedTokens };
}

function piecesOf({ messages, tools, toolChoice, format, thinking, stop, endless }) {
  const question = textOf(messages.findLast((message) => message.role === 'user')?.content);
  const answer = answerFor(question, { thinking });
  const list = tokensOf(answer.reasoning).map((text) => ({ kind: 'reasoning', text }));
  const call = chooseTool(tools, toolChoice, question) ?? answer.call;
  if (call) {
    list.push({ kind: 'call', name: call.name });
    for (const text of tokensOf(JSON.stringify(exampleOf(call.parameters)))) list.push({ kind: 'arguments', text });
    return { list, end: 'tool_calls', stopString: null, delay: answer.delay };
  }
  let content = endless ? answer.content.repeat(40) : answer.content;
  if (format) content = format.text ?? (format.type === 'json_object' ? '{}' : JSON.stringify(exampleOf(format.schema)));
  const found = (stop ?? []).filter((text) => content.includes(text)).sort((a, b) => content.indexOf(a) - content.indexOf(b))[0];
  if (found !== undefined) content = content.slice(0, content.indexOf(found));
  for (const text of tokensOf(content)) list.push({ kind: 'content', text });
  return { list, end: 'stop', stopString: found ?? null, delay: answer.delay };
}

function chooseTool(tools, choice, question) {
  if (!tools?.length || choice === 'none') return null;
  if (typeof choice === 'object') {
    const named = tools.find((tool) => tool.name === choice.name);
    if (!named) throw badRequest(`tool_choice names '${choice.name}', which is not among the tools`, 'tool_choice');
    return named;
  }
  return choice === 'required' || question.includes('tool') ? tools[0] : null;
}

export function timingsOf({ promptTokens, cachedTokens, list }) {
  const drafted = Math.round(list.length * 0.9);
  return {
    prompt_n: promptTokens - cachedTokens, prompt_ms: 12.5, cache_n: cachedTokens,
    predicted_n: list.length, predicted_ms: Math.max(1, list.length * 5.1),
    draft_n: drafted, draft_n_accepted: Math.round(drafted * 0.71),
  };
}

export const reasoningTokens = ({ list }) => list.filter((piece) => piece.kind === 'reasoning').length;
export const joined = ({ list }, kind) => list.filter((piece) => piece.kind === kind).map((piece) => piece.text).join('');
