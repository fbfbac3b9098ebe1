#!/usr/bin/env bash
# Runs every test that needs a GPU, on a machine that may have nothing but the test programs:
#   tests/gpu/run.sh [FOLDER WITH TEST PROGRAMS [FOLDER FOR LOGS]]
# A suite whose program dies, as it does when a kernel faults, goes on with the tests after the one
# that died. Fails when a test does, or when there was no GPU to run on.
set -uo pipefail

programs=${1:-build/cuda/tests}
logs=${2:-$(mktemp -d)}
mkdir -p "$logs"
PATH=$PATH:/usr/local/cuda/bin  # compute-sanitizer

suite_limit=300     # seconds
sanitizer_limit=240 # per tool
gpu_tests='*cuda*:*Cuda*'

# At least one test per kernel, each with few launches: sanitizers are slow. Not RoutedExperts and
# MlpAndExperts: racecheck does not follow the barrier of the warps that choose.
sanitized=(NormEqual.GatedRmsNorm NormEqual.RopeTable NormEqual.Join NormEqual.Peaks
  CandidatesEqual.OfWhatIsNoNumber
  LinearEqual.LinearsEqualEachLinear LinearEqual.ExtremesDoNotSaturate LinearEqual.EmbedIsExact
  ExpertsEqual.ManyExperts AttentionEqual.HostileScores AttentionEqual.EqualScoresAreTheExactMean
  DeltaNetEqual.HostileGates RecordReplay.RecordsMatchTheReference KvCodesEqual.HostileScores
  KvCodesEqual.RowsAreLeftAsTheTailHoldsThem FusedEqual.GateHeadsThenLinear
  LargeFloats.NormLinearsEqualNormAndLinears LargeFloats.OutputsOfAnyMagnitude
  LargeFloats.EmbedIsExact ExpertsEqual.LargeFloats
  MixerEqual.GatedDeltaNet WideEqual.IntegersAreExact WideEqual.GatedMlp
  KvCodesEqual.WideHeadsOfManyRows)

rows=()
all_passed=0
bad=0

# The names of the GPU's tests in $1, in full.
list_tests() {
  "$1" --gtest_list_tests --gtest_filter="$gpu_tests" |
    awk '/^[^ ].*\.( |$)/ { suite = $1 } /^  / { print suite $1 }'
}

# finished LOG WORD: the tests that ended with WORD ("OK", "FAILED" or "SKIPPED").
finished() { sed -nE "s/^\[ +$2 +\] ([^ ,]+).* \([0-9]+ ms\)$/\1/p" "$1"; }

seconds_since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'; }

# row SUITE PASSED FAILED SKIPPED SECONDS
row() {
  rows+=("$(printf '%-44s %7s %7s %7s %9s' "$@")")
  if [ "$3" != failed ] && [ "$3" -gt 0 ]; then bad=1; fi
}

# run_suite PROGRAM SUITE TEST...
run_suite() {
  local program=$1 suite=$2
  shift 2
  local remaining=("$@") passed=0 failed=0 skipped=0 begin=$EPOCHREALTIME
  local log=$logs/${program##*/}.${suite//\//_}.log
  : >"$log"
  while [ ${#remaining[@]} -gt 0 ]; do
    local part=$log.part status=0 filter
    filter=$(IFS=: && echo "${remaining[*]}")
    timeout -k 5 $suite_limit "$program" --gtest_filter="$filter" >"$part" 2>&1 || status=$?
    cat "$part" >>"$log"
    passed=$((passed + $(finished "$part" OK | wc -l)))
    failed=$((failed + $(finished "$part" FAILED | wc -l)))
    skipped=$((skipped + $(finished "$part" SKIPPED | wc -l)))
    # What was begun but did not end took the program down.
    local begun ended
    begun=$(sed -n 's/^\[ RUN      \] //p' "$part")
    ended=$({ finished "$part" OK && finished "$part" FAILED && finished "$part" SKIPPED; })
    if [ -z "$begun" ]; then
      failed=$((failed + ${#remaining[@]}))
      echo "$suite did not start (status $status)" | tee -a "$log"
      break
    elif [ "$(wc -l <<<"$begun")" -gt "$(grep -c . <<<"$ended")" ]; then
      failed=$((failed + 1))
      echo "$(tail -n 1 <<<"$begun") took the program down (status $status)" | tee -a "$log"
    fi
    mapfile -t remaining < <(printf '%s\n' "${remaining[@]}" | grep -vxF "$begun")
  done
  rm -f "$log.part"
  if [ $failed -gt 0 ]; then
    echo "--- $suite: $log begins"
    grep -vE '^(\[(==|--)|\[ RUN|\[       OK|Note:|Running main|$)' "$log" | head -n 40
  fi
  all_passed=$((all_passed + passed))
  row "$suite" $passed $failed $skipped "$(seconds_since "$begin")"
}

run_program() {
  local program=$1 tests suites suite
  [ -x "$program" ] || return 0
  mapfile -t tests < <(list_tests "$program")
  [ ${#tests[@]} -gt 0 ] || return 0
  mapfile -t suites < <(printf '%s\n' "${tests[@]}" | sed 's/\..*//' | uniq)
  for suite in "${suites[@]}"; do
    mapfile -t members < <(printf '%s\n' "${tests[@]}" | grep "^$suite\.")
    run_suite "$program" "$suite" "${members[@]}"
  done
}

# run_sanitizer TOOL
run_sanitizer() {
  local tool=$1 begin=$EPOCHREALTIME log=$logs/$1.log status=0 filter
  filter=$(printf '*%s/cuda:' "${sanitized[@]}")
  timeout -k 5 $sanitizer_limit compute-sanitizer --tool "$tool" --error-exitcode 9 \
    "$programs/test_kernels" --gtest_filter="$filter" >"$log" 2>&1 || status=$?
  local passed failed skipped
  passed=$(finished "$log" OK | wc -l)
  failed=$(finished "$log" FAILED | wc -l)
  skipped=$(finished "$log" SKIPPED | wc -l)
  if [ $status -eq 124 ]; then
    echo "$tool: not done in $sanitizer_limit s; the tests that were count"
  elif [ $status -ne 0 ]; then
    failed=$((failed > 0 ? failed : 1))
    echo "--- $tool: $log has"
    grep '^=========' "$log" | head -n 40
  fi
  row "$tool" "$passed" "$failed" "$skipped" "$(seconds_since "$begin")"
}

[ -x "$programs/test_kernels" ] || { echo "no test_kernels in $programs" >&2 && exit 1; }
row suite passed failed skipped seconds
run_program "$programs/test_kernels"
for program in "$programs"/test_*; do
  [ "$program" = "$programs/test_kernels" ] || run_program "$program"
done
if ! command -v compute-sanitizer >/dev/null; then
  echo "compute-sanitizer is not installed: no memcheck, no racecheck"
elif [ $all_passed -gt 0 ]; then
  run_sanitizer memcheck
  run_sanitizer racecheck
fi

echo
printf '%s\n' "${rows[@]}"
echo "logs are in $logs"
if [ $all_passed -eq 0 ]; then
  echo "FAILED: no test passed on a GPU"
  grep -hA1 -m1 'Skipped$' "$logs"/*.log | head -n 2
  exit 1
fi
[ $bad -eq 0 ] || { echo "FAILED" && exit 1; }
echo "PASSED"
