#!/usr/bin/env bash
# The chat page that is checked in must be what its sources make. usage: page.sh
# Exit status 77: nothing was tested, because Node.js or the npm registry is missing.
set -euo pipefail
cd "$(dirname "$0")/../../web"

skip() {
  echo "SKIPPED: the page was not built: $1" >&2
  exit 77
}
command -v npm >/dev/null || skip "Node.js 20 and npm are needed"
node -e 'const [major, minor] = process.versions.node.split("."); process.exit(major > 20 || (major == 20 && minor >= 19) ? 0 : 1)' ||
  skip "Node.js $(node --version) is older than 20.19"
if ! cmp -s package-lock.json node_modules/.installed-lock; then
  npm ci --silent --no-audit --no-fund || skip "what the build needs could not be installed from the npm registry"
  cp package-lock.json node_modules/.installed-lock
fi
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
npx vite build --logLevel warn --outDir "$made" --emptyOutDir
cmp dist/index.html "$made/index.html" || {
  echo "web/dist/index.html is not what web/src makes; run: make web" >&2
  exit 1
}
echo "the page is what its sources make"
