#!/usr/bin/env bash
# Hot kernels (tools/hot-kernels.txt) keep everything in registers: no spills, no stack frame.
#   tools/check-spills.sh BUILD.log     the output of a build of all .cu files, with -Xptxas -v
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: $0 BUILD.log (of ninja or nvcc, with -Xptxas -v)" >&2 && exit 2; }
list=$(dirname "$0")/hot-kernels.txt

# One line per kernel and architecture; then the names as people write them; then the table.
awk '
  function report() {
    if (hot) print entry "\t" arch "\t" registers "\t" shared "\t" stack "\t" stores "\t" loads
    hot = 0
  }
  FNR == NR { if ($0 !~ /^ *(#|$)/) { gsub(/^ +| +$/, ""); names[$0] = 0 } next }
  /Compiling entry function/ {
    report()
    split($0, quoted, "\047"); entry = quoted[2]; arch = quoted[4]
    registers = shared = stack = stores = loads = 0
    for (name in names) if (index(entry, name)) { hot = 1; names[name] = 1 }
  }
  /Function properties for/ { described = $NF }
  /bytes stack frame/ && described == entry { stack = $1; stores = $5; loads = $9 }
  /Used [0-9]+ registers/ {
    for (i = 2; i <= NF; ++i) {
      if ($i ~ /^registers/) registers = $(i - 1)
      if ($i ~ /^smem/) shared = $(i - 2)
    }
  }
  END {
    report()
    for (name in names) if (!names[name]) print name "\t" "missing"
  }' "$list" "$1" |
  c++filt -p | sed 's/(anonymous namespace):://g; s/slip:://g' | sort |
  awk -F '\t' '
    BEGIN {
      printf "%-60s %-8s %9s %8s %6s %12s\n", "kernel", "arch", "registers", "shared", "stack",
        "spilled"
    }
    $2 == "missing" { printf "%-60s is not in this log\n", $1; bad = 1; next }
    {
      spilled = $6 + $7
      printf "%-60s %-8s %9d %8d %6d %12d%s\n", $1, $2, $3, $4, $5, spilled,
        $5 + spilled ? "  <-- local memory" : ""
      if ($5 + spilled) bad = 1
      ++kernels
    }
    END {
      if (bad) { print "hot kernels are missing or use local memory"; exit 1 }
      if (!kernels) print "no hot kernels are listed"
      else print kernels " hot kernels keep everything in registers"
    }'
