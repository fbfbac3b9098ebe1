#!/usr/bin/env bash
# Measures minnow and a synthetic 35B-A3B and keeps the numbers of this machine in bench/results/.
set -euo pipefail
cd "$(dirname "$0")/.."
model=$(awk -F': ' '/^model name/ {print $2; exit}' /proc/cpuinfo)
machine=$(echo "${model:-$(uname -m)} $(nproc) cores" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-')
mkdir -p bench/results
build/slipstream bench --repeat 5 --save "bench/results/$machine.minnow.json"
needed_kib=21000000
free_kib=$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)
if [ "$free_kib" -lt "$needed_kib" ]; then
  echo "The 35B shape needs $((needed_kib / 1000000)) GB of free memory, there are" \
    "$((free_kib / 1000000)) GB: left out." >&2
  exit 0
fi
build/slipstream bench --model qwen3.5-35b-a3b --synthetic -p 128 -n 32 -d 0 \
  --save "bench/results/$machine.qwen3.5-35b-a3b.json"
