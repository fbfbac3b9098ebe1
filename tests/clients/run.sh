#!/usr/bin/env bash
# Starts `slipstream serve` with minnow on a free port, runs the tests of the npm clients against
# it, and stops it. usage: run.sh BINARY [TEST_FILE...]
# Exit status 77: nothing was tested, because Node.js or the npm registry is missing.
set -euo pipefail

[ $# -ge 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
binary=$(realpath "$1")
shift
cd "$(dirname "$0")"

skip() {
  echo "SKIPPED: the client tests did not run: $1" >&2
  exit 77
}
command -v npm >/dev/null || skip "Node.js 20 and npm are needed"
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || skip "Node.js $(node --version) is too old, 20 is needed"
if ! cmp -s package-lock.json node_modules/.installed-lock; then
  npm ci --silent --no-audit --no-fund || skip "the packages could not be installed from the npm registry"
  cp package-lock.json node_modules/.installed-lock
fi

log=$(mktemp)
key=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
SLIPSTREAM_API_KEY=$key "$binary" serve --port 0 --max-users 8 --max-queue 16 2>"$log" &
server=$!
stop() {
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  rm -f "$log"
}
trap stop EXIT

url=
until [ -n "$url" ]; do
  url=$(grep -om1 'http://[0-9.:]*' "$log" || true)
  kill -0 "$server" 2>/dev/null || { cat "$log" >&2; exit 1; }
  sleep 0.1
done
node run.mjs "$url" "$key" "$@" || { echo "The server's last lines:" >&2; tail -20 "$log" >&2; exit 1; }
kill -0 "$server" || { echo "The server has ended:" >&2; tail -20 "$log" >&2; exit 1; }
