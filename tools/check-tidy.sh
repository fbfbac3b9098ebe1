#!/usr/bin/env bash
# clang-tidy over src/ and apps/, as .clang-tidy says, on the translation units of a unity build:
# headers are read once per twelve files. `tools/check-tidy.sh 'text|hub'` takes a part of it.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v clang-tidy >/dev/null; then
  echo "clang-tidy is missing. Debian has it, as version 14: apt-get install clang-tidy" >&2
  exit 1
fi

# A build of its own, which is never made: clang cannot read the precompiled headers of g++.
folder=build/tidy
cmake --preset release -B $folder -DSLIP_TESTS=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
  -DCMAKE_CXX_COMPILER_LAUNCHER= >/dev/null
logs=$folder/findings
rm -rf $logs
mkdir -p $logs

# build/tidy/src/CMakeFiles/slip_text.dir/Unity/unity_1_cxx.cxx: "slip_text, part 1"
name_of() {
  sed -E "s|^$PWD/||; s|.*/(slip[a-z0-9_]*)\.dir/Unity/unity_([0-9]+)_.*|\1, part \2|" <<<"$1"
}

# The analyzer would pass over what a unity file includes. It stops looking at a function after a
# quarter of its usual number of states: with all of them one file of the server takes minutes.
# g++ has warnings that clang has not.
options=(-Wno-unknown-warning-option -Xclang -analyzer-opt-analyze-headers
  -Xclang -analyzer-config -Xclang max-nodes=50000)
arguments="${options[*]/#/--extra-arg=}"
check_unit() {
  local name log
  name=$(name_of "$1")
  log=$logs/${name//\//_}
  # shellcheck disable=SC2086
  if clang-tidy --quiet -p $folder $arguments "$1" >"$log" 2>&1; then
    echo "$name: clean"
  else
    echo "$name: see $log"
  fi
}
export -f name_of check_unit
export folder logs arguments

mapfile -t units < <(sed -n 's/^ *"file": "\(.*\)"$/\1/p' $folder/compile_commands.json |
  grep -v slip_precompiled | grep -E -- "${1:-.}")
if [ ${#units[@]} -eq 0 ]; then
  echo "no translation unit has '${1:-.}' in its path" >&2
  exit 1
fi

done=0
failed=0
while read -r line; do
  done=$((done + 1))
  echo "[$done/${#units[@]}] $line"
  [[ $line == *": clean" ]] && continue
  failed=$((failed + 1))
  grep -vE '^[0-9]+ warnings? (generated|treated)' "${line##*: see }" || true
done < <(printf '%s\0' "${units[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'check_unit "$1"' _ {})

findings=$(cat $logs/* | { grep -E '^/.*: (warning|error): ' || true; } | sort -u | wc -l)
echo "clang-tidy: $findings findings; $failed of ${#units[@]} translation units have some"
[ $failed -eq 0 ] && [ $done -eq ${#units[@]} ]
