#!/usr/bin/env bash
# Bar: 32 users at once get at least 1.5 times the tok/s of one without drafts, pauses between tokens
# are even (p99 below 8 medians), and second turns of a 1,000-token conversation begin in less than
# 15 % of the time of first ones. Medians of five rounds: where a machine puts its threads changes one
# user's speed by a third from one minute to the next. usage: load.sh BINARY [OPTION_OF_BENCH_SERVE...]
set -euo pipefail

[ $# -ge 1 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
binary=$(realpath "$1")
shift
log=$(mktemp)
reports=$(mktemp -d)
"$binary" serve --port 0 2>"$log" &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" || true; rm -rf "$log" "$reports"' EXIT
until grep -q 'is ready' "$log"; do
  kill -0 "$server" 2>/dev/null || { cat "$log" >&2; exit 1; }
  sleep 0.1
done
url=$(grep -om1 'http://[0-9.:]*' "$log")

uptime
# Once before it counts: a server that just started meets each page of its memory for the first time.
"$binary" bench serve --url "$url" --users 32 --prompt-tokens 32 --conversations 0 >/dev/null 2>&1
# Short prompts: the bar is about decoding, and prompts take as long together as one by one.
for round in 1 2 3 4 5; do
  "$binary" bench serve --url "$url" --users 32 --repeat 6 --prompt-tokens 32 --conversations 1 --save "$reports/$round.json" "$@"
done
uptime
node --input-type=module - "$reports"/*.json <<'SCRIPT'
import { readFileSync } from 'node:fs';
import process from 'node:process';
const rounds = process.argv.slice(2).map((file) => JSON.parse(readFileSync(file, 'utf8')));
const crowds = rounds.map(({ rows }) => rows.at(-1));
let short = 0;
const check = (what, values, holds) => {
  const falling = values.toSorted((a, b) => b - a), median = falling[falling.length >> 1];
  console.log(`${holds(median) ? 'met  ' : 'SHORT'} ${what}: ${median.toFixed(2)} (${values.map((x) => x.toFixed(2)).join(' ')})`);
  short += !holds(median);
};
console.log();
check('32 users: failures in all', [crowds.reduce((sum, crowd) => sum + crowd.failures, 0)], (x) => x === 0);
check('32 users: tok/s over one without drafts, at least 1.5', crowds.map((crowd) => crowd.gain), (x) => x >= 1.5);
check('32 users: p99 of pauses over their median, below 8', crowds.map((crowd) => crowd.inter_token_p99_over_p50), (x) => x < 8);
check('second turns: first token, share of the first turn, below 0.15', rounds.map(({ prefix }) => prefix.share), (x) => x < 0.15);
process.exit(short ? 1 : 0);
SCRIPT
