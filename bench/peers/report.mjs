// The table at the end of run.sh, from what it puts into the environment.
const before = JSON.parse(process.env.OURS_BEFORE);
const after = JSON.parse(process.env.OURS_AFTER);
const theirs = JSON.parse(process.env.THEIRS);
const {SHAPE: shape, THREADS: threads} = process.env;

const rate = (result, kind) => result.rows.find((row) => row.test.startsWith(kind)).tokens_per_second;
const line = (name, ours, peer) => {
  const mean = (ours[0] + ours[1]) / 2;
  console.log(`${name.padEnd(18)}${ours.map((x) => x.toFixed(2)).join(" / ").padStart(18)}` +
    `${peer.toFixed(2).padStart(14)}${(mean / peer).toFixed(2).padStart(8)}x`);
};
console.log(`${shape}, ${threads} threads, random weights, tokens per second`);
console.log(`${"".padEnd(18)}${"slipstream".padStart(18)}${"llama.cpp".padStart(14)}${"ratio".padStart(9)}`);
line("prompt of 128", [rate(before, "pp"), rate(after, "pp")], theirs.prompt_tokens_per_second);
line("decoding", [rate(before, "tg"), rate(after, "tg")], theirs.tokens_per_second);
console.log("slipstream was measured before and after llama.cpp; the ratio is of the mean.");
