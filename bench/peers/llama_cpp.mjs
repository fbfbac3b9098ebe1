// llama.cpp on a GGUF file.
// usage: node llama_cpp.mjs FILE '{"prompt": [ids], "tokens": N, "threads": N}'
//          how fast it reads the prompt and goes on, in tokens per second
//        node llama_cpp.mjs FILE '{"prompt": [ids], "answer": [ids], "threads": N}'
//          how many tokens of the answer it would have chosen itself, and how far, in logits, the
//          others are below its choice
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const [file, text] = process.argv.slice(2);
const {prompt, answer, tokens = answer?.length, threads} = JSON.parse(text);
const llama = await getLlama({
  gpu: false, build: "never", progressLogs: false, logLevel: LlamaLogLevel.error,
});
const model = await llama.loadModel({modelPath: file, gpuLayers: 0});
const context = await model.createContext({
  contextSize: prompt.length + tokens + 64, batchSize: 512, threads, sequences: 1,
});
const sequence = context.getSequence();

async function measure() {
  const started = performance.now();
  let first = 0, count = 0;
  for await (const _ of sequence.evaluate(prompt, {temperature: 0, yieldEogToken: true})) {
    if (count++ === 0) first = performance.now();
    if (count >= tokens) break;
  }
  return {
    prompt_tokens_per_second: prompt.length / (first - started) * 1000,
    tokens_per_second: (count - 1) / (performance.now() - first) * 1000,
  };
}

async function compare() {
  const ids = [...prompt, ...answer];
  const first = prompt.length - 1;
  const results = await sequence.controlledEvaluate(ids.map((id, i) =>
    i >= first && i < ids.length - 1 ? [id, {generateNext: {probabilities: true}}] : id));
  let same = 0, worst = 0;
  for (let i = first; i < ids.length - 1; ++i) {
    const chances = results[i].next.probabilities;  // the most likely one first
    const [choice, best] = chances.entries().next().value;
    if (choice === ids[i + 1]) ++same;
    worst = Math.max(worst, Math.log(best / (chances.get(ids[i + 1]) ?? 0)));
  }
  return {same, of: answer.length, worst};
}

console.log(JSON.stringify(answer ? await compare() : await measure()));
await llama.dispose();
