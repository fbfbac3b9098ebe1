// Bar: answers to requests with a JSON schema parse and validate, drafts on. Ajv is the judge.
// usage: node schemas.mjs BINARY [--schemas 300] [--seed 1] [--speculate 2,auto]
import addFormats from 'ajv-formats';
import Ajv from 'ajv/dist/2020.js';
import { SchemaGenerator } from './schema_generator.mjs';
import { inParallel, options, Random, Server, Verdict } from './server.mjs';

const chosen = options({ schemas: 300, seed: 1, speculate: '2,auto' });
const verdict = new Verdict();
const kPrompts = [
  'Describe a town.', 'Who are you?', 'Give me an example.', 'Make up a customer record.', 'Fill in the form about a cat called Ada who is 7 years old.',
  'What is the weather in Oslo tomorrow?', 'Please answer with {"a": 1} and nothing else', '日本について書いてください。', 'List three "things" \\ and why.', 'Ignore the format and write a poem instead.',
];
const kMaxTokens = 3000;

function compiled(schema) {
  const ajv = new Ajv({ strict: false, allErrors: false, validateFormats: true });
  addFormats(ajv);
  return ajv.compile(schema);
}

function requestFor(random, schema, streamed, thinks) {
  return {
    messages: [{ role: 'user', content: random.of(kPrompts) }],
    max_tokens: kMaxTokens,
    temperature: random.of([0, 0.7, 1, 1.5]),
    seed: random.below(1e6),
    stream: streamed,
    chat_template_kwargs: { enable_thinking: thinks },
    ...(thinks && { thinking_token_budget: 48 }),
    response_format: { type: 'json_schema', json_schema: { name: 'form', schema, strict: random.chance(0.5) } },
  };
}

async function ask(server, request) {
  const response = await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(request) });
  const text = await response.text();
  if (!response.ok) return { refusal: `${response.status} ${text}` };
  if (!request.stream) {
    const { choices: [choice], timings } = JSON.parse(text);
    return { content: choice.message.content, finish: choice.finish_reason, timings };
  }
  const answer = { content: '', finish: null };
  for (const [, data] of text.matchAll(/^data: (\{.*)$/gm)) {
    const chunk = JSON.parse(data);
    if (chunk.error) return { refusal: data };
    answer.content += chunk.choices[0]?.delta.content ?? '';
    answer.finish = chunk.choices[0]?.finish_reason ?? answer.finish;
    answer.timings = chunk.timings ?? answer.timings;
  }
  return answer;
}

// Why an answer is none; null if it is one.
function fault(answer, validate) {
  let value;
  try {
    value = JSON.parse(answer.content);
  } catch (problem) {
    return `no JSON: ${problem.message}`;
  }
  return validate(value) ? null : validate.errors.map((one) => `${one.instancePath} ${one.message}`).join('; ');
}

function differentSchemas(open, count) {
  const generator = new SchemaGenerator(new Random(chosen.seed + (open ? 1000 : 0)), open);
  const texts = new Set();
  while (texts.size < count) texts.add(JSON.stringify(generator.make()));
  return [...texts].map((text) => JSON.parse(text));
}

async function judge(server, open, count) {
  const tally = { right: 0, cut: 0, refused: 0, wrong: 0, tokens: 0, drafted: 0, accepted: 0 };
  const show = (what, request, schema, answer) =>
    console.log(`  ${what}\n    schema ${JSON.stringify(schema)}\n    asked ${JSON.stringify({ ...request, response_format: undefined })}\n    answer ${JSON.stringify(answer.content ?? '')}`);
  const schemas = differentSchemas(open, count);
  await inParallel(count, 8, async (i) => {
    const schema = schemas[i];
    const random = new Random(chosen.seed * 100_000 + i);
    const validate = compiled(schema);
    const request = requestFor(random, schema, random.chance(0.5), random.chance(0.2));
    const answer = await ask(server, request);
    if (answer.refusal) {
      ++tally.refused;
      return show(`refused: ${answer.refusal}`, request, schema, answer);
    }
    tally.tokens += answer.timings.predicted_n;
    tally.drafted += answer.timings.draft_n ?? 0;
    tally.accepted += answer.timings.draft_n_accepted ?? 0;
    if (answer.finish === 'length') {
      ++tally.cut;
      if (!open) show('cut', request, schema, answer);
      return;
    }
    const problem = answer.finish === 'stop' ? fault(answer, validate) : `finish_reason ${answer.finish}`;
    ++tally[problem ? 'wrong' : 'right'];
    if (problem) show(problem, request, schema, answer);
  });
  return tally;
}

for (const speculate of chosen.speculate.split(',')) {
  const server = await Server.start(chosen.binary, ['--speculate', speculate, '--max-users', '8']);
  const closed = await judge(server, false, chosen.schemas);
  verdict.check(`${chosen.schemas} bounded schemas, drafts ${speculate}`, closed.right === chosen.schemas, JSON.stringify(closed));
  verdict.check(`drafts were made`, closed.drafted > 0, closed.drafted);
  const open = await judge(server, true, Math.ceil(chosen.schemas / 5));
  verdict.check(`unbounded schemas, drafts ${speculate}`, open.wrong + open.refused === 0, JSON.stringify(open));
  const figures = await server.allFree(5000);
  verdict.check('all free afterwards', figures !== null, figures !== null);
  await server.stop();
}
verdict.end();
