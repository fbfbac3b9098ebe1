#!/usr/bin/env bash
# A folder of src/ includes from itself and from the folders that its slip_folder() line in
# src/CMakeLists.txt names, and from all of these. The environment is read in apps/ alone.
set -euo pipefail
cd "$(dirname "$0")/.."

grep -h '^ *slip_folder(' src/CMakeLists.txt | tr -d '()' | sed 's/^ *slip_folder//' |
  awk '
    { known[$1] = 1; for (i = 2; i <= NF; ++i) named[$1, $i] = 1 }
    function folder_of(path) {
      while (!(path in known) && path ~ /\//) sub(/\/[^\/]*$/, "", path)
      return path
    }
    END {
      bad = 0
      while (("grep -rn \"#include \\\"[a-z0-9_]*/\" src" | getline line) > 0) {
        split(line, part, ":")
        from = part[1]; sub(/^src\//, "", from); sub(/\/[^\/]*$/, "", from); from = folder_of(from)
        match(line, /"[^"]*"/)
        to = substr(line, RSTART + 1, RLENGTH - 2); sub(/\/[^\/]*$/, "", to); to = folder_of(to)
        if (from == to) continue
        used[from, to] = 1
        if ((from, to) in named) continue
        print part[1] ":" part[2] ": slip_folder(" from " ...) does not name " to
        bad = 1
      }
      for (edge in named) {
        split(edge, folder, SUBSEP)
        if (edge in used) continue
        print "slip_folder(" folder[1] " ...) names " folder[2] ", but nothing there includes it"
        bad = 1
      }
      exit bad
    }'

if grep -rn 'getenv' src; then
  echo "only apps/ may read the environment"
  exit 1
fi
echo "include edges are as declared"
