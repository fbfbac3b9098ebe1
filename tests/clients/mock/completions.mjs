// POST /v1/completions
import { badRequest, EventStream, newId, pause, sendJson } from './http.mjs';
import { checkModel, joined, model, plan, timingsOf } from './generate.mjs';

export async function completions(body, response, { delay }) {
  checkModel(body.model);
  if (body.prompt === undefined) throw badRequest("'prompt' is missing", 'prompt');
  const batch = Array.isArray(body.prompt) && body.prompt.some((one) => typeof one !== 'number') ? body.prompt : [body.prompt];
  const prompts = batch.map((one) => (typeof one === 'string' ? one : one.map((id) => ` ${id}`).join('')));
  const answers = prompts.map((prompt) =>
    plan({ messages: [{ role: 'user', content: prompt }], thinking: false, maxTokens: body.max_tokens ?? 16, stop: [body.stop ?? []].flat() }));
  const head = { id: newId('cmpl-'), object: 'text_completion', created: Math.floor(Date.now() / 1000), model };
  const completionTokens = answers.reduce((sum, answer) => sum + answer.list.length, 0);
  const promptTokens = answers.reduce((sum, answer) => sum + answer.promptTokens, 0);
  const usage = { prompt_tokens: promptTokens, completion_tokens: completionTokens, total_tokens: promptTokens + completionTokens };
  const choiceOf = (answer, index) => {
    const texts = answer.list.map((piece) => piece.text);
    const choice = { index, text: (body.echo ? prompts[index] : '') + joined(answer, 'content'), finish_reason: answer.end };
    if (body.logprobs !== undefined) {
      choice.logprobs = {
        tokens: texts, token_logprobs: texts.map(() => -0.5),
        top_logprobs: texts.map((text) => ({ [text]: -0.5 })), text_offset: texts.map((_, i) => texts.slice(0, i).join('').length),
      };
    }
    return choice;
  };
  if (!body.stream) return sendJson(response, 200, { ...head, choices: answers.map(choiceOf), usage, timings: timingsOf(answers[0]) });
  const events = new EventStream(response);
  for (const [index, answer] of answers.entries()) {
    for (const piece of answer.list) {
      await pause(delay);
      if (events.gone) return;
      events.data({ ...head, choices: [{ index, text: piece.text, finish_reason: null }] });
    }
    events.data({ ...head, choices: [{ index, text: '', finish_reason: answer.end }] });
  }
  if (body.stream_options?.include_usage) events.data({ ...head, choices: [], usage });
  events.data('[DONE]');
  events.end();
}
