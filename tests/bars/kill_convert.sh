#!/usr/bin/env bash
# kill -9 at random moments of every conversion: what has its name is complete, and the same command
# run again always ends in the checkpoint that an undisturbed run makes.
#
#   kill_convert.sh BINARY BF16_DIR [KILLS]     BF16_DIR: a model with an MTP layer, such as minnow's
set -euo pipefail

binary=$1 source=$2 kills=${3:-50}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
RANDOM=7

convert() { "$binary" convert "$@" >> "$work/log" 2>&1; }
fail() {
  echo "SHORT: $*"
  tail -5 "$work/log"
  exit 1
}

# The folders differ in nothing but the order of equal files.
same() { diff -r -q "$1" "$2" > "$work/diff" || fail "$3: $(head -3 "$work/diff")"; }

# What an undisturbed run makes.
convert int4 --model "$source" --out "$work/int4"
convert fp8 --model "$source" --out "$work/fp8"
convert hybrid --int4 "$work/int4" --fp8 "$work/fp8" --out "$work/hybrid"
convert hybrid --int4 "$work/int4" --fp8 "$work/fp8" --out "$work/full" --full

command_of() {  # KIND OUT
  case $1 in
    int4) echo int4 --model "$source" --out "$2" ;;
    fp8) echo fp8 --model "$source" --out "$2" ;;
    hybrid) echo hybrid --int4 "$work/int4" --fp8 "$work/fp8" --out "$2" --link copy ;;
    full) echo hybrid --int4 "$work/int4" --fp8 "$work/fp8" --out "$2" --full ;;
    mtp) echo mtp --from "$work/fp8" --to "$2" ;;
  esac
}

# A checkpoint without its MTP layer, for `convert mtp`.
without_mtp() {
  cp -r "$work/int4" "$1"
  rm "$1/model_extra_tensors.safetensors" "$1/model.safetensors.index.json"
}

killed=0 complete=0 rounds=0
kinds=(int4 fp8 hybrid full mtp)
while ((killed < kills)); do
  kind=${kinds[$((rounds++ % ${#kinds[@]}))]}
  out=$work/out-$kind
  [[ $kind != mtp || -e $out ]] || without_mtp "$out"
  read -ra command <<< "$(command_of "$kind" "$out")"
  "$binary" convert "${command[@]}" >> "$work/log" 2>&1 &
  child=$!
  # Most conversions of minnow take a tenth of a second, INT4 a second.
  most=150
  [[ $kind != int4 ]] || most=900
  sleep "$(printf '0.%03d' $((RANDOM % most)))"
  kill -9 $child 2> /dev/null || true
  status=0
  wait $child 2> /dev/null || status=$?
  if ((status == 137)); then killed=$((killed + 1)); fi
  if [[ -e $out && $kind != mtp ]]; then
    convert check "$out" --deep || fail "$kind: has its name and is not good"
  fi
  if ((status == 0 || RANDOM % 3 == 0)); then  # now and then a run may come to its end
    convert "${command[@]}" || fail "$kind: does not end after being killed"
    convert check "$out" --deep || fail "$kind: is not good"
    case $kind in
      hybrid | full | int4 | fp8) same "$out" "$work/$kind" "$kind" ;;
    esac
    convert "${command[@]}" || fail "$kind: a second run fails"
    rm -rf "$out"
    complete=$((complete + 1))
  fi
done
for kind in "${kinds[@]}"; do
  out=$work/out-$kind
  [[ $kind != mtp || -e $out ]] || without_mtp "$out"
  read -ra command <<< "$(command_of "$kind" "$out")"
  convert "${command[@]}" || fail "$kind: does not end after being killed"
  convert check "$out" --deep || fail "$kind: is not good"
  [[ $kind == mtp ]] || same "$out" "$work/$kind" "$kind"
  complete=$((complete + 1))
done
left=$(find "$work" -name '.*.partial' | wc -l)
((left == 0)) || fail "$left unfinished folders are left over"
echo "met: $killed kills, $complete complete checkpoints, all as an undisturbed run makes them"
