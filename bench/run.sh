#!/usr/bin/env bash
# Measures minnow and a synthetic 35B-A3B and keeps the numbers of this machine in bench/results/.
set -euo pipefail
cd "$(dirname "$0")/.."
machine=$(build/slipstream doctor --json --quick | sed -E 's/.*"cpu": "([^"]*)".*/\1/' |
  tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-')-$(nproc)
mkdir -p bench/results
build/slipstream bench --save "bench/results/$machine-minnow.json" --repeat 5
free_kib=$(awk '/MemAvailable/ {print $2}' /proc/meminfo)
if [ "$free_kib" -lt 21500000 ]; then
  echo "35B-A3B needs 21.5 GB of free memory, there are $((free_kib / 1000000)) GB: left out" >&2
  exit 0
fi
build/slipstream bench --model qwen3.5-35b-a3b --synthetic -p 128 -n 32 -d 0 \
  --save "bench/results/$machine-qwen3.5-35b-a3b.json"
