// POST /v1/responses, stateless.
import { badRequest, EventStream, newId, pause, sendJson } from './http.mjs';
import { checkModel, joined, model, plan, reasoningTokens } from './generate.mjs';

function messagesOf({ input, instructions }) {
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  const messages = items.map((item) =>
    item.type === 'function_call_output' ? { role: 'tool', content: item.output }
      : item.type === 'function_call' ? { role: 'assistant', content: '' } : { role: item.role, content: item.content });
  return instructions ? [{ role: 'system', content: instructions }, ...messages] : messages;
}

function outputOf(answer) {
  const output = [];
  if (reasoningTokens(answer) > 0) output.push({ type: 'reasoning', id: newId('rs_'), summary: [], content: [{ type: 'reasoning_text', text: joined(answer, 'reasoning') }] });
  const call = answer.list.find((piece) => piece.kind === 'call');
  if (call) output.push({ type: 'function_call', id: newId('fc_'), call_id: newId('call_'), name: call.name, arguments: joined(answer, 'arguments'), status: 'completed' });
  else output.push({ type: 'message', id: newId('msg_'), role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: joined(answer, 'content'), annotations: [] }] });
  return output;
}

export async function responses(body, response, { delay }) {
  checkModel(body.model);
  if (body.previous_response_id) throw badRequest('previous_response_id: this server keeps no responses; send the whole input', 'previous_response_id');
  const choice = body.tool_choice;
  const answer = plan({
    messages: messagesOf(body), tools: body.tools?.filter((tool) => tool.type === 'function'),
    toolChoice: choice, thinking: body.reasoning?.effort !== 'none', maxTokens: body.max_output_tokens,
    format: body.text?.format?.type === 'json_schema' ? { type: 'json_schema', schema: body.text.format.schema } : null,
  });
  const output = outputOf(answer);
  const base = { id: newId('resp_'), object: 'response', created_at: Math.floor(Date.now() / 1000), model, error: null, tools: body.tools ?? [], parallel_tool_calls: true, tool_choice: choice ?? 'auto', metadata: {} };
  const usage = {
    input_tokens: answer.promptTokens, input_tokens_details: { cached_tokens: answer.cachedTokens }, output_tokens: answer.list.length,
    output_tokens_details: { reasoning_tokens: reasoningTokens(answer) }, total_tokens: answer.promptTokens + answer.list.length,
  };
  const cut = answer.end === 'length';
  const whole = { ...base, status: cut ? 'incomplete' : 'completed', incomplete_details: cut ? { reason: 'max_output_tokens' } : null, output, usage };
  if (!body.stream) return sendJson(response, 200, whole);

  const events = new EventStream(response);
  let sequence = 0;
  const send = (type, fields) => events.named(type, { type, sequence_number: sequence++, ...fields });
  send('response.created', { response: { ...base, status: 'in_progress', output: [] } });
  send('response.in_progress', { response: { ...base, status: 'in_progress', output: [] } });
  for (const [output_index, item] of output.entries()) {
    const at = { output_index, item_id: item.id };
    const deltas = async (kind, type, more) => {
      for (const piece of answer.list.filter((one) => one.kind === kind)) {
        await pause(delay);
        send(type, { ...at, ...more, delta: piece.text });
      }
    };
    if (item.type === 'message') {
      const empty = { type: 'output_text', text: '', annotations: [] };
      send('response.output_item.added', { output_index, item: { ...item, status: 'in_progress', content: [] } });
      send('response.content_part.added', { ...at, content_index: 0, part: empty });
      await deltas('content', 'response.output_text.delta', { content_index: 0, logprobs: [] });
      send('response.output_text.done', { ...at, content_index: 0, text: item.content[0].text, logprobs: [] });
      send('response.content_part.done', { ...at, content_index: 0, part: item.content[0] });
    } else if (item.type === 'function_call') {
      send('response.output_item.added', { output_index, item: { ...item, status: 'in_progress', arguments: '' } });
      await deltas('arguments', 'response.function_call_arguments.delta', {});
      send('response.function_call_arguments.done', { ...at, name: item.name, arguments: item.arguments });
    } else {
      send('response.output_item.added', { output_index, item: { ...item, content: [] } });
      send('response.content_part.added', { ...at, content_index: 0, part: { type: 'reasoning_text', text: '' } });
      await deltas('reasoning', 'response.reasoning_text.delta', { content_index: 0 });
      send('response.reasoning_text.done', { ...at, content_index: 0, text: item.content[0].text });
      send('response.content_part.done', { ...at, content_index: 0, part: item.content[0] });
    }
    send('response.output_item.done', { output_index, item });
  }
  send(cut ? 'response.incomplete' : 'response.completed', { response: whole });
  events.end();
}
