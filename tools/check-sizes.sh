#!/usr/bin/env bash
# No source file is longer than a reader will take in: 500 lines.
set -euo pipefail
cd "$(dirname "$0")/.."
long=$(git ls-files 'src/*' 'apps/*' | grep -E '\.(cc|h|cu|cuh)$' | xargs wc -l | awk '$1 > 500 && $2 != "total"')
[ -z "$long" ] || { echo "longer than 500 lines; what in them is a thing of its own?" >&2; echo "$long" >&2; exit 1; }
echo "no source file is longer than 500 lines"
