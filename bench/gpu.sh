#!/usr/bin/env bash
# Measures what README and docs/status.md say of GPUs, on this one, with random weights of the
# published shapes, and keeps the output in a folder of bench/results:
#   bench/gpu.sh [PART...]    decode drafts recipes contexts gemma formats ops; without any, all of them
#   SLIPSTREAM=PROGRAM FOLDER=DIR bench/gpu.sh    another program, another folder
# 122B needs 80 GB of the GPU's memory: what does not fit is said, and the others are measured.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
slipstream=${SLIPSTREAM:-build/slipstream}
known=(decode drafts recipes contexts gemma formats ops)
parts=("$@")
[ $# -gt 0 ] || parts=("${known[@]}")
for part in "${parts[@]}"; do
  if [[ " ${known[*]} " != *" $part "* ]]; then
    sed -n '2,6s/^# //p' "$0" >&2
    exit 2
  fi
done

gpu=$("$slipstream" doctor --json 2>/dev/null |
  sed -nE 's/.*"usable": true, "description": "[^"]*\(([^"]+)\)".*/\1/p')
if [ -z "$gpu" ]; then
  echo "$slipstream sees no GPU: 'make cuda' builds the program for one, 'doctor' says what is wrong" >&2
  exit 1
fi
folder=${FOLDER:-bench/results/$(echo "$gpu" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-')}
mkdir -p "$folder"

qwen=(qwen3.5-122b-a10b qwen3.5-35b-a3b)
gemma=(gemma-4-31b gemma-4-26b-a4b gemma-4-12b gemma-4-e4b gemma-4-e2b)
rounded=(--head int8 --shared-experts fp8) # at load
failed=0

# measure FILE ARGUMENTS...: the program's output, behind the command that gave it, into FILE.
begun=()
measure() {
  local file=$folder/$1
  shift
  [[ " ${begun[*]-} " == *" $file "* ]] || : >"$file"
  begun+=("$file")
  {
    echo "slipstream $*"
    "$slipstream" "$@" || echo "failed with exit status $?"
    echo
  } 2>&1 | tee -a "$file"
  ! tail -n 2 "$file" | grep -q '^failed with' || failed=1
}

# Decoding with one user, as files are published and with what is rounded at load, and prompts.
part_decode() {
  for shape in "${qwen[@]}"; do
    measure "$shape.txt" bench "$shape" --synthetic "${rounded[@]}" -n 128,256 -d 0,2048 -p 4096
    measure "$shape.txt" bench "$shape" --synthetic -n 128 -d 0 -p 4096
  done
}

# Every technique's share, and what a DGX Spark might make of it.
part_drafts() {
  for shape in "${qwen[@]}"; do
    measure "$shape.ladder.txt" bench ladder "$shape" --synthetic --simulate-acceptance 0.8 \
      --shortlist 32768 --project gb10
  done
}

# Keys and values in codes where there is little context. In turn, since 2 % is less than one run
# differs from the next.
part_recipes() {
  for recipe in bf16 k4v4 bf16 k4v4; do
    measure recipes.txt bench qwen3.5-122b-a10b --synthetic "${rounded[@]}" --kv-cache "$recipe" \
      -p '' -n 128 -d 0,2048
  done
}

# Long contexts, whose values are arbitrary and cost no time to fill, and five users of 256K.
part_contexts() {
  for recipe in bf16 k4v4; do
    measure contexts.txt bench qwen3.5-122b-a10b --synthetic "${rounded[@]}" --kv-cache "$recipe" \
      --users 1 -p '' -n 64 -d 0,2048,32768,131072,261000
  done
  measure contexts.txt bench qwen3.5-122b-a10b --synthetic "${rounded[@]}" --kv-cache k4v4 \
    --users 5 -p '' -n 64 -d 261000 --memory 128G
}

part_gemma() {
  for shape in "${gemma[@]}"; do
    measure gemma-4.txt bench "$shape" --synthetic --head int8 -d 0
    measure gemma-4.txt bench ladder "$shape" --synthetic --simulate-acceptance 0.8
  done
  # Drafts from a list, where the drafter's head is not in clusters.
  for shape in gemma-4-31b gemma-4-26b-a4b gemma-4-12b; do
    measure gemma-4.txt bench ladder "$shape" --synthetic --simulate-acceptance 0.8 --shortlist 32768
  done
  for recipe in bf16 k4v4; do
    measure gemma-4.txt bench gemma-4-31b --synthetic --head int8 --kv-cache "$recipe" -p '' -n 32 -d 32768
  done
}

# Files as they are most often published: in FP8 (Qwen) and in BF16 (Gemma), and the other way round.
# Nothing is rounded.
part_formats() {
  for shape in qwen3.5-122b-a10b-fp8 qwen3.5-35b-a3b-{fp8,bf16} qwen3.5-27b-{fp8,bf16} \
    gemma-4-{31b,26b-a4b}{,-fp8,-bf16} gemma-4-{12b,e4b,e2b}-bf16; do
    measure formats.txt bench "$shape" --synthetic -d 0 -p 2048 -n 128
  done
  for shape in qwen3.5-35b-a3b-fp8 gemma-4-26b-a4b-bf16; do
    measure "ops.$shape.txt" bench ops "$shape" --rows 1,3,8
  done
}

# Kernel by kernel, with the share of the bandwidth that each reaches.
part_ops() {
  for shape in "${qwen[@]}"; do
    measure "ops.$shape.txt" bench ops "$shape" "${rounded[@]}"
  done
  measure ops.qwen3.5-122b-a10b.txt bench ops qwen3.5-122b-a10b "${rounded[@]}" --rows 8
  measure ops.qwen3.5-27b.txt bench ops qwen3.5-27b "${rounded[@]}"
  for shape in gemma-4-31b gemma-4-26b-a4b; do
    measure "ops.$shape.txt" bench ops "$shape" --head int8 --drafter int4 --rows 1,3,4,5,6,8
  done
}

for part in "${parts[@]}"; do "part_$part"; done
echo "The figures are in $folder."
exit $failed
