// POST /v1/chat/completions
import { badRequest, EventStream, newId, pause, sendJson } from './http.mjs';
import { checkModel, joined, model, plan, reasoningTokens, timingsOf } from './generate.mjs';

function checked(body) {
  checkModel(body.model);
  if (!Array.isArray(body.messages) || body.messages.length === 0) throw badRequest("'messages' must be a list that is not empty", 'messages');
  if (body.temperature !== undefined && !(body.temperature >= 0 && body.temperature <= 2)) throw badRequest("'temperature' must be between 0 and 2", 'temperature');
  if (body.max_tokens < 1) throw badRequest("'max_tokens' must be at least 1", 'max_tokens');
  if (body.top_p > 1) throw badRequest("'top_p' must be at most 1", 'top_p');
  const format = body.response_format;
  if (format && !['text', 'json_object', 'json_schema'].includes(format.type)) throw badRequest(`response_format '${format.type}' is unknown`, 'response_format');
  const choice = body.tool_choice;
  return {
    messages: body.messages,
    tools: body.tools?.map((tool) => tool.function),
    toolChoice: typeof choice === 'object' ? choice?.function : choice,
    format: formatOf(body),
    thinking: body.chat_template_kwargs?.enable_thinking ?? true,
    maxTokens: body.max_completion_tokens ?? body.max_tokens,
    endless: body.ignore_eos,
    stop: typeof body.stop === 'string' ? [body.stop] : body.stop,
  };
}

function formatOf({ response_format: format, structured_outputs: wanted }) {
  if (wanted?.regex) return { type: 'json_schema', text: '000-aa' }; // the one pattern that the tests ask for
  if (wanted?.choice) return { type: 'json_schema', text: wanted.choice[0] };
  if (format?.type !== 'json_schema') return format?.type === 'json_object' ? format : null;
  if (format.json_schema.schema.not) throw badRequest("schema: the keyword 'not' is not supported", 'response_format');
  return { type: 'json_schema', schema: format.json_schema.schema };
}

const usageOf = (answer) => ({
  prompt_tokens: answer.promptTokens,
  completion_tokens: answer.list.length,
  total_tokens: answer.promptTokens + answer.list.length,
  prompt_tokens_details: { cached_tokens: answer.cachedTokens },
  completion_tokens_details: { reasoning_tokens: reasoningTokens(answer) },
});

const logprobOf = (text, top) => ({
  token: text, logprob: -0.25, bytes: [...Buffer.from(text)],
  top_logprobs: Array.from({ length: top }, (_, i) => ({ token: i === 0 ? text : `alt${i}`, logprob: -0.25 - i, bytes: [...Buffer.from(i === 0 ? text : `alt${i}`)] })),
});

export async function chat(body, response, options) {
  const answer = plan(checked(body));
  const head = { id: newId('chatcmpl-'), created: Math.floor(Date.now() / 1000), model };
  if (body.stream) return stream(answer, head, body, response, options);
  const content = joined(answer, 'content');
  const call = answer.list.find((piece) => piece.kind === 'call');
  const message = { role: 'assistant', content: call && !content ? null : content };
  if (reasoningTokens(answer) > 0) message.reasoning_content = joined(answer, 'reasoning');
  if (call) message.tool_calls = [{ id: newId('call_'), type: 'function', function: { name: call.name, arguments: joined(answer, 'arguments') } }];
  const choice = { index: 0, message, finish_reason: answer.end };
  if (body.logprobs) choice.logprobs = { content: answer.list.filter((piece) => piece.kind === 'content').map((piece) => logprobOf(piece.text, body.top_logprobs ?? 0)) };
  const choices = Array.from({ length: body.n ?? 1 }, (_, index) => ({ ...choice, index }));
  sendJson(response, 200, { ...head, object: 'chat.completion', choices, usage: usageOf(answer), timings: timingsOf(answer) });
}

async function stream(answer, head, body, response, { delay, flaw }) {
  const events = new EventStream(response);
  const chunk = (choices, more = {}) =>
    events.data({ ...head, ...(flaw === 'changing-id' && { id: newId('chatcmpl-') }), object: 'chat.completion.chunk', choices, ...(flaw === 'usage-null' && { usage: null }), ...more });
  const send = (delta, more = {}) => chunk([{ index: 0, delta, finish_reason: null, ...more }]);
  send({ role: 'assistant', content: '' });
  if (body.return_progress) chunk([{ index: 0, delta: {}, finish_reason: null }], { prompt_progress: { total: answer.promptTokens, processed: answer.promptTokens, time_ms: 12 } });
  for (const piece of answer.list) {
    await pause(answer.delay ?? delay);
    if (events.gone && flaw !== 'talks-on') return;
    const index = flaw === 'no-tool-index' ? {} : { index: 0 };
    if (piece.kind === 'reasoning') send(flaw === 'thinking-in-content' ? { content: piece.text } : { reasoning_content: piece.text });
    if (piece.kind === 'content') send({ content: piece.text }, body.logprobs ? { logprobs: { content: [logprobOf(piece.text, body.top_logprobs ?? 0)] } } : {});
    if (piece.kind === 'call') send({ tool_calls: [{ ...index, id: newId('call_'), type: 'function', function: { name: piece.name, arguments: '' } }] });
    if (piece.kind === 'arguments') send({ tool_calls: [{ ...index, function: { arguments: piece.text } }] });
  }
  chunk([{ index: 0, delta: {}, finish_reason: flaw === 'wrong-finish' ? 'stop' : answer.end }]);
  if (body.stream_options?.include_usage || flaw === 'usage-always') chunk([], { usage: usageOf(answer), timings: timingsOf(answer) });
  if (flaw !== 'no-done') events.data('[DONE]');
  events.end();
}
