#!/usr/bin/env bash
# llama.cpp (as npm's node-llama-cpp brings it) and slipstream on the same weights in the same run.
# usage: bench/peers/run.sh [SHAPE]      a published shape with random weights; qwen3.5-2b
#        bench/peers/run.sh --text       no speed: does it see minnow's answers as we do?
# BINARY=path chooses the slipstream to measure, THREADS=N the threads of both (all processors).
# Exit status 77: nothing was compared, because Node.js or the npm registry is missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
binary=$(realpath "${BINARY:-build/slipstream}")
threads=${THREADS:-$(nproc)}
work=build/peers
mkdir -p "$work"

skip() {
  echo "SKIPPED: llama.cpp was not measured: $1" >&2
  exit 77
}
command -v npm >/dev/null || skip "Node.js 20 and npm are needed"
cp "$here/package.json" "$here/llama_cpp.mjs" "$work/"
if [ ! -d "$work/node_modules/node-llama-cpp" ]; then
  echo "Installing node-llama-cpp into $work ..." >&2
  (cd "$work" && npm install --silent --no-audit --no-fund) || skip "npm could not install it"
fi

peer() { node "$work/llama_cpp.mjs" "$1" "$2"; }
field() { node -p "JSON.parse(require('fs').readFileSync(0, 'utf8'))$1"; }

if [ "${1:-}" = --text ]; then
  file=$work/minnow.gguf
  [ -f "$file" ] || "$binary" convert gguf minnow --out "$file"
  # It rounds what meets integer weights to 8 bits, so near ties may fall the other way; more than
  # a tenth of a logit would be another model.
  failed=0
  for text in "The kernel" "def add(a, b):" "Once upon a time" "1. Install the package"; do
    prompt=$(printf %s "$text" | "$binary" eval tokenize -m minnow | field ".ids.join()")
    answer=$("$binary" run --json --greedy --ignore-eos -n 32 --raw "$text" | field ".token_ids.join()")
    found=$(peer "$file" "{\"prompt\": [$prompt], \"answer\": [$answer], \"threads\": 1}")
    printf '%s\n' "$found" | TEXT=$text node -e '
      const {same, of, worst} = JSON.parse(require("fs").readFileSync(0, "utf8"));
      console.log(`${same} of ${of} tokens are its choice too, the others at most ` +
        `${worst.toFixed(3)} below it: ${process.env.TEXT}`);
      process.exit(worst < 0.1 ? 0 : 1)' || failed=1
  done
  exit $failed
fi

shape=${1:-qwen3.5-2b}
file=$work/$shape.gguf
[ -f "$file" ] || "$binary" convert gguf --synthetic "$shape" --out "$file"
tokens=32
prompt=$(node -p "Array.from({length: 128}, (_, i) => 1000 + i * 7).join()")
ours() {
  "$binary" bench --model "$shape" --synthetic -p 128 -n $tokens -d 0 -r 3 -t "$threads" --json
}
# Ours before and after, so that a machine that slows down shows.
before=$(ours)
theirs=$(peer "$file" "{\"prompt\": [$prompt], \"tokens\": $tokens, \"threads\": $threads}")
after=$(ours)
OURS_BEFORE=$before OURS_AFTER=$after THEIRS=$theirs SHAPE=$shape THREADS=$threads \
  node "$here/report.mjs"
