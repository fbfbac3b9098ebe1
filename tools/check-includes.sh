#!/usr/bin/env bash
# A folder of src/ may include only from itself and from the folders it links, directly or through
# them: the slip_folder() lines of src/CMakeLists.txt. The environment is read in apps/ alone.
set -euo pipefail
cd "$(dirname "$0")/.."

grep -h '^ *slip_folder(' src/CMakeLists.txt | tr -d '()' | sed 's/^ *slip_folder//' |
  awk '
    { folders[++count] = $1; for (i = 2; i <= NF; ++i) links[$1, $i] = 1; known[$1] = 1 }
    END {
      for (k = 1; k <= count; ++k)  # the closure: links of links
        for (a = 1; a <= count; ++a) for (b = 1; b <= count; ++b) for (c = 1; c <= count; ++c)
          if ((folders[a], folders[b]) in links && (folders[b], folders[c]) in links)
            links[folders[a], folders[c]] = 1
      bad = 0
      while (("grep -rn \"#include \\\"[a-z0-9_]*/\" src" | getline line) > 0) {
        split(line, part, ":")
        from = part[1]; sub(/^src\//, "", from); sub(/\/[^\/]*$/, "", from)
        match(line, /"[^"]*"/)
        to = substr(line, RSTART + 1, RLENGTH - 2); sub(/\/[^\/]*$/, "", to)
        while (!(from in known) && from ~ /\//) sub(/\/[^\/]*$/, "", from)
        while (!(to in known) && to ~ /\//) sub(/\/[^\/]*$/, "", to)
        if (from == to || (from, to) in links) continue
        print part[1] ":" part[2] ": " from "/ must not include from " to "/"
        bad = 1
      }
      exit bad
    }'

if grep -rn 'getenv' src; then
  echo "only apps/ may read the environment"
  exit 1
fi
echo "include edges are as declared"
