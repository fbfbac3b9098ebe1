#!/usr/bin/env bash
# Bar: 32 users at once get at least 1.5 times the tok/s of one without drafts, pauses between tokens
# are even (p99 below 8 medians), and second turns of a 1,000-token conversation begin in less than
# 15 % of the time of first ones. usage: load.sh BINARY [OPTION_OF_BENCH_SERVE...]
set -euo pipefail

[ $# -ge 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
binary=$(realpath "$1")
shift
log=$(mktemp)
report=$(mktemp)
"$binary" serve --port 0 2>"$log" &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" || true; rm -f "$log" "$report"' EXIT
until grep -q 'is ready' "$log"; do
  kill -0 "$server" 2>/dev/null || { cat "$log" >&2; exit 1; }
  sleep 0.1
done
url=$(grep -om1 'http://[0-9.:]*' "$log")

uptime
# Once before it counts: a server that just started meets each page of its memory for the first time.
"$binary" bench serve --url "$url" --users 32 --prompt-tokens 32 --conversations 0 >/dev/null 2>&1
# Short prompts: the bar is about decoding, and prompts take as long together as one by one.
"$binary" bench serve --url "$url" --users 1,32 --repeat 8 --prompt-tokens 32 --conversations 5 --save "$report" "$@"
uptime
node --input-type=module - "$report" <<'SCRIPT'
import { readFileSync } from 'node:fs';
import process from 'node:process';
const { rows, prefix } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const crowd = rows.at(-1);
let short = 0;
const check = (what, holds, found) => {
  console.log(`${holds ? 'met  ' : 'SHORT'} ${what}: ${found}`);
  short += !holds;
};
console.log();
check(`${crowd.users} users: failures`, crowd.failures === 0, crowd.failures);
check(`${crowd.users} users: tok/s over one without drafts, at least 1.5`, crowd.gain >= 1.5, crowd.gain.toFixed(2));
check(`${crowd.users} users: p99 of pauses over their median, below 8`, crowd.inter_token_p99_over_p50 < 8, crowd.inter_token_p99_over_p50.toFixed(1));
check('second turns: first token, share of the first turn, below 0.15', prefix.share < 0.15, prefix.share.toFixed(3));
process.exit(short ? 1 : 0);
SCRIPT
