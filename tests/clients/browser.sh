#!/usr/bin/env bash
# The chat page in headless Chromium, against the stand-in server and, if a binary is given, against
# `slipstream serve` with minnow. Screenshots go to screenshots/. usage: browser.sh [BINARY]
# Exit status 77: nothing was tested, because Chromium, Node.js or the npm registry is missing.
set -euo pipefail

binary=${1:+$(realpath "$1")}
cd "$(dirname "$0")/browser"

skip() {
  echo "SKIPPED: the browser tests did not run: $1" >&2
  exit 77
}
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || skip "Chromium is needed (apt-get install chromium)"
command -v npm >/dev/null || skip "Node.js 20 and npm are needed"
if ! cmp -s package-lock.json node_modules/.installed-lock; then
  npm ci --silent --no-audit --no-fund || skip "playwright-core could not be installed from the npm registry"
  cp package-lock.json node_modules/.installed-lock
fi
CHROMIUM=$chromium SLIPSTREAM_BINARY=$binary node --test --test-reporter=spec .
