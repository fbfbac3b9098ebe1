#!/usr/bin/env bash
# What the program says about itself, in the forms that systems keep such things in: a man page from
# --help, completions for three shells. usage: make-docs.sh BINARY FOLDER
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
binary=$(realpath "$1")
folder=$2

# Plain text to roff: backslashes, dots and quotes at the beginning of a line, and hyphens that are
# meant as such.
roff() { sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\\([.']\\)/\\\\\\&\\1/"; }

man_page() {
  local help version verb
  help=$("$binary" --help)
  version=$("$binary" --version)
  printf '.TH SLIPSTREAM 1 "" "%s" "User Commands"\n' "$version"
  printf '.SH NAME\nslipstream \\- runs large language models on one machine, straight from their files\n'
  printf '.SH SYNOPSIS\n.B slipstream\n.I VERB\n[\\fIOPTIONS\\fR]\n'
  # Help is up to 80 columns wide: there is none for an indentation.
  printf '.SH DESCRIPTION\n.in 0\n.nf\n'
  printf '%s\n' "$help" | sed '1,/^Usage:/d' | roff
  printf '.fi\n'
  # Verbs stand two spaces deep between "Verbs:" and the next empty line; two words at most.
  printf '%s\n' "$help" | sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z ]*[a-z]\)  .*/\1/p' |
    while read -r verb; do
      printf '.SH "SLIPSTREAM %s"\n.in 0\n.nf\n' "$(printf %s "$verb" | tr a-z A-Z)"
      # shellcheck disable=SC2086  # a verb may be two words
      "$binary" $verb --help </dev/null | roff
      printf '\n.fi\n'
    done
  printf '.SH FILES\n.TP\n.I ~/.cache/huggingface\nmodels that were pulled\n'
}

mkdir -p "$folder/share/man/man1" "$folder/share/bash-completion/completions" \
  "$folder/share/zsh/site-functions" "$folder/share/fish/vendor_completions.d"
man_page > "$folder/share/man/man1/slipstream.1"
"$binary" completions bash > "$folder/share/bash-completion/completions/slipstream"
"$binary" completions zsh > "$folder/share/zsh/site-functions/_slipstream"
"$binary" completions fish > "$folder/share/fish/vendor_completions.d/slipstream.fish"
