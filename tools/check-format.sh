#!/usr/bin/env bash
# Formatting as .clang-format says; `tools/check-format.sh --fix` applies it.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(--dry-run --Werror)
[ "${1:-}" != --fix ] || mode=(-i)
git ls-files --cached --others --exclude-standard 'src/*.h' 'src/*.cc' 'apps/*.h' 'apps/*.cc' \
  'tests/*.h' 'tests/*.cc' 'bench/*.cc' 'src/*.cu' 'src/*.cuh' 'tests/*.cu' | xargs clang-format "${mode[@]}"
echo "formatting is as .clang-format says"
