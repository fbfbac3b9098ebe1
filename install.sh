#!/usr/bin/env bash
# Installs slipstream: checks what it needs, builds it (or unpacks a release), puts the program, its
# default model, man page, completions and systemd unit under one prefix, and, if wanted, pulls a
# model and starts the server. May be run again at any time; never calls sudo.
#
# usage: ./install.sh [OPTIONS]
#   --prefix DIR      where to install; /usr/local for root, ~/.local for others
#   --release FILE    unpack this release (slipstream-*-Linux-*.tar.gz) instead of building
#   --build-dir DIR   where to build; build/release
#   --cuda            build with the CUDA backend (needs nvcc)
#   --model REPO      pull this model, org/name[@revision], from Hugging Face
#   --serve           start the server at the end
#   --yes             ask nothing: no model and no server unless the flags above say so
#   --uninstall       remove what was installed under the prefix; models and settings stay
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

fail() {
  clear_line
  printf 'install.sh: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}
usage() { sed -n '/^# usage/,/^set -e/s/^# \{0,1\}//p' "$0"; }

again=$(printf '%q ' "$0" "$@")  # the command that goes on after a failure
prefix='' release='' build_dir='' cuda='' model='' serve='' yes='' uninstall=''
while [ $# -gt 0 ]; do
  case $1 in
    --prefix | --release | --build-dir | --model)
      [ $# -gt 1 ] || { usage >&2; exit 2; }
      declare "$(printf %s "${1#--}" | tr - _)=$2"
      shift
      ;;
    --cuda | --serve | --yes | --uninstall) declare "${1#--}=1" ;;
    -h | --help) usage; exit 0 ;;
    *) printf 'install.sh: there is no option %s\n\n' "$1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
if [ -z "$prefix" ]; then
  if [ "$(id -u)" -eq 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
fi
prefix=$(realpath -m "$prefix")
build_dir=$(realpath -m "${build_dir:-$here/build/$([ -n "$cuda" ] && echo cuda || echo release)}")
manifest=$prefix/share/slipstream/installed-files
case $(id -u):$prefix in
  0:/usr | 0:/usr/local) settings=/etc/slipstream ;;
  0:*) settings=$prefix/etc/slipstream ;;
  *) settings=$HOME/.config/slipstream ;;
esac

unit=$prefix/share/systemd/user/slipstream.service systemctl='systemctl --user'
if [ "$(id -u)" -eq 0 ]; then
  unit=$prefix/lib/systemd/system/slipstream.service systemctl=systemctl
  # The service runs as a user of its own, who cannot look into root's cache.
  export HF_HOME=/var/cache/slipstream
fi

# One line per stage. On a terminal it changes while the stage runs; elsewhere only its end is shown.
stage_number=0 stages=4 stage_name=''
[ -z "$model" ] || stages=$((stages + 1))
[ -z "$serve" ] || stages=$((stages + 1))
clear_line() { if [ -t 2 ]; then printf '\r\033[K' >&2; fi; }
stage() { stage_number=$((stage_number + 1)) stage_name=$1; progress "..."; }
progress() {
  if [ -t 2 ]; then printf '\r\033[K[%d/%d] %-24s %s' $stage_number $stages "$stage_name" "$1" >&2; fi
}
done_with() {
  clear_line
  printf '[%d/%d] %-24s %s\n' $stage_number $stages "$stage_name" "$1" >&2
}

check_system() {
  stage "Checking the system"
  [ "$(uname -s)" = Linux ] || fail "this is $(uname -s); slipstream runs on Linux"
  case $(uname -m) in
    x86_64 | aarch64) ;;
    *) fail "this processor is $(uname -m); slipstream is made for x86_64 and aarch64" ;;
  esac
  local parent=$prefix
  while [ ! -e "$parent" ]; do parent=$(dirname "$parent"); done
  [ -w "$parent" ] || fail "$prefix cannot be written by $(id -un)" \
    "for yourself:  ./install.sh --prefix ~/.local" "for everybody: sudo ./install.sh --prefix $prefix"
  local free_kib
  free_kib=$(df -Pk "$parent" | awk 'NR == 2 {print $4}')
  [ "$free_kib" -gt 200000 ] || fail "$prefix has only $((free_kib / 1024)) MiB left, 200 are needed"
  [ -n "$release" ] || check_tools
  done_with "$(uname -m), into $prefix"
}

check_tools() {
  local missing
  missing=$("$here/tools/install-deps.sh" build list) || true
  [ -z "$missing" ] || fail "packages are missing that a build needs; as root, run:" \
    "apt-get update && apt-get install -y --no-install-recommends $(echo $missing)"
  local compiler=${CXX:-c++}
  for tool in cmake ninja "$compiler"; do
    command -v "$tool" >/dev/null || fail "$tool is not installed; it is needed for a build" \
      "Debian and Ubuntu: apt-get install -y g++ cmake ninja-build"
  done
  local version
  version=$("$compiler" -dumpversion | cut -d. -f1)
  [ "$version" -ge 12 ] || fail "$compiler is version $version; g++ 12 or newer is needed" \
    "apt-get install -y g++-12, then: CXX=g++-12 ./install.sh"
  [ -z "$cuda" ] || command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] ||
    fail "--cuda needs NVIDIA's compiler nvcc, version 12.8 or newer" \
      "it is part of the CUDA toolkit; without --cuda the program uses the processor"
  mkdir -p "$build_dir"
  local free_kib
  free_kib=$(df -Pk "$build_dir" | awk 'NR == 2 {print $4}')
  [ -f "$build_dir/build.ninja" ] || [ "$free_kib" -gt 2000000 ] ||
    fail "a build needs 2 GB in $build_dir, and only $((free_kib / 1024)) MiB are free there"
}

# Fills $staged, a folder with everything that goes under the prefix.
build() {
  stage "Building"
  local log=$build_dir/install.log started=$SECONDS
  if [ ! -f "$build_dir/build.ninja" ]; then
    cmake -S "$here" -B "$build_dir" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O2 \
      -DSLIP_TESTS=OFF ${cuda:+-DSLIP_CUDA=ON} >"$log" 2>&1 || { tail -20 "$log" >&2; fail "cmake failed; all of it is in $log"; }
  fi
  # Lines of ninja begin with [12/340].
  if ! cmake --build "$build_dir" --target slipstream 2>&1 | tee "$log" | while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    progress "$((100 * BASH_REMATCH[1] / BASH_REMATCH[2])) % (${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps, $((SECONDS - started)) s)"
  done; then
    grep -A8 -m1 -E 'error:|FAILED' "$log" >&2 || tail -20 "$log" >&2
    fail "the build failed; all of it is in $log"
  fi
  DESTDIR=$staged cmake --install "$build_dir" --prefix / >"$log" 2>&1 ||
    { tail -20 "$log" >&2; fail "collecting the files failed; all of it is in $log"; }
  done_with "done in $((SECONDS - started)) s"
}

unpack() {
  stage "Unpacking"
  [ -f "$release" ] || fail "there is no file $release"
  tar -xzf "$release" -C "$staged" --strip-components=1 2>/dev/null ||
    fail "$release is no whole archive" "download it again and compare its checksum"
  [ -x "$staged/bin/slipstream" ] || fail "$release holds no bin/slipstream: it is no release of slipstream"
  done_with "$(basename "$release")"
}

# A copy becomes the file in one step, so a running program is not disturbed and a killed run leaves
# old or new files, never halves.
put_file() {
  mkdir -p "$(dirname "$2")"
  cp "$1" "$2.new"
  chmod "$(stat -c %a "$1")" "$2.new"
  mv -f "$2.new" "$2"
}

place_unit() {
  local template=slipstream-user.service into=$staged${unit#"$prefix"}
  [ "$(id -u)" -ne 0 ] || template=slipstream.service
  rm -rf "$staged/lib/systemd"
  mkdir -p "$(dirname "$into")"
  # Paths in a command are quoted: there may be blanks in them.
  sed -e "/^ExecStart=/s|/usr/bin/slipstream|\"$prefix/bin/slipstream\"|" \
    -e "/^ExecStart=/s|/etc/slipstream/serve.conf|\"$settings/serve.conf\"|" \
    -e "/^ExecStart=/!s|/etc/slipstream|$settings|" "$staged/share/slipstream/$template" >"$into"
}

# The unit needs them to start. Made once: then they are the user's.
place_settings() {
  [ ! -f "$settings/serve.conf" ] || return 0
  mkdir -p "$settings"
  cp "$prefix/share/slipstream/serve.conf" "$settings/serve.conf"
}

# What was pulled is served, unless the user's settings name a model, or are JSON.
name_model_in_settings() {
  grep -qE '^ *(\{|(model|from-huggingface-repo) *=)' "$settings/serve.conf" ||
    printf 'model = %s\n' "$model" >>"$settings/serve.conf"
  grep -qxF "model = $model" "$settings/serve.conf" ||
    printf '      the server serves what %s names, not %s\n' "$settings/serve.conf" "$model" >&2
}

install_files() {
  stage "Installing"
  "$staged/bin/slipstream" --version >/dev/null 2>&1 ||
    fail "the program does not run on this machine ($(uname -m))" "$("$staged/bin/slipstream" --version 2>&1 | head -1)"
  place_unit
  local old="" new file count=0
  [ ! -f "$manifest" ] || old=$(cat "$manifest")
  new=$(cd "$staged" && find . -type f | sed 's|^\./||' | sort)
  # The list is written first, and names old and new files, so that a killed run can be undone.
  mkdir -p "$(dirname "$manifest")"
  printf '%s\n%s\n' "$old" "$new" | sed '/^$/d' | sort -u >"$manifest"
  while IFS= read -r file; do
    put_file "$staged/$file" "$prefix/$file"
    count=$((count + 1))
    progress "$count files"
  done <<<"$new"
  while IFS= read -r file; do
    [ -z "$file" ] || grep -qxF "$file" <<<"$new" || rm -f "$prefix/$file"
  done <<<"$old"
  printf '%s\n' "$new" >"$manifest"
  place_settings
  done_with "$count files"
}

check_program() {
  stage "Trying it"
  local answer
  answer=$("$prefix/bin/slipstream" run --raw --greedy -n 8 "Once upon a time" 2>&1) ||
    fail "the installed program does not answer:" "$answer"
  done_with "$("$prefix/bin/slipstream" --version): \"Once upon a time$(printf %s "$answer" | head -1)\""
  case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) printf '      %s is not in PATH; add it:  echo '\''export PATH="%s:$PATH"'\'' >> ~/.profile\n' \
      "$prefix/bin" "$prefix/bin" >&2 ;;
  esac
}

ask() {
  [ -z "$yes" ] && [ -t 0 ] && [ -t 2 ] || return 1
  printf '%s ' "$1" >&2
  IFS= read -r reply
}

# As the program takes it.
check_model() {
  [[ $model =~ ^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+(@[A-Za-z0-9._/-]+)?$ ]] ||
    fail "a model is org/name or org/name@revision, not \"$model\""
}

pull_model() {
  stage "Pulling $model"
  clear_line
  "$prefix/bin/slipstream" pull "$model" || fail "$model was not pulled; to go on with it:" "$again"
  name_model_in_settings
  done_with "${HF_HOME:-~/.cache/huggingface}"
}

# Starts the server and shows how far loading is, until it answers.
start_server() {
  stage "Starting the server"
  local config=$settings/serve.conf
  local port log health pid=
  port=$(sed -n 's/^port *= *\([0-9]*\).*/\1/p' "$config" | tail -1)
  log=$(mktemp)
  "$prefix/bin/slipstream" serve --config "$config" 2>"$log" &
  pid=$!
  trap 'kill $pid 2>/dev/null; wait $pid 2>/dev/null; rm -rf "$staged" "$log"; exit 130' INT TERM
  while :; do
    kill -0 $pid 2>/dev/null || fail "the server ended:" "$(tail -3 "$log")"
    health=$(ask_health "${port:-8080}") || health=
    case $health in
      *'"ok"'*) break ;;
      *progress*) progress "loading $(sed 's/.*"progress": *\([0-9.]*\).*/\1/' <<<"$health" | awk '{printf "%d %%", 100 * $1}')" ;;
    esac
    sleep 0.2
  done
  done_with "http://127.0.0.1:${port:-8080}, settings in $config"
  printf '      Ctrl-C ends it. To have it always: %s enable --now %s\n' "$systemctl" "$(printf %q "$unit")" >&2
  wait $pid
}

ask_health() {
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf 'GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
  cat <&3
  exec 3>&-
} 2>/dev/null

remove_all() {
  [ -f "$manifest" ] || fail "there is no installation under $prefix ($manifest is not there)" \
    "name the prefix it was installed under: ./install.sh --uninstall --prefix DIR"
  local file count=0
  while IFS= read -r file; do
    [ -n "$file" ] || continue
    rm -f "$prefix/$file"
    count=$((count + 1))
    # Folders that are now empty, up to the prefix.
    (cd "$prefix" && rmdir -p --ignore-fail-on-non-empty "$(dirname "$file")" 2>/dev/null) || true
  done <"$manifest"
  rm -f "$manifest"
  (cd "$prefix" && rmdir -p --ignore-fail-on-non-empty share/slipstream 2>/dev/null) || true
  printf 'Removed %d files from %s. Models (%s) and settings (%s) were left.\n' $count "$prefix" \
    "${HF_HOME:-~/.cache/huggingface}" "$settings"
}

if [ -n "$uninstall" ]; then
  remove_all
  exit 0
fi
[ -z "$model" ] || check_model
staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
trap 'clear_line; echo "interrupted; run it again to go on" >&2; exit 130' INT TERM
check_system
if [ -n "$release" ]; then unpack; else build; fi
install_files
check_program
if [ -z "$model" ] && ask "A model to pull (org/name), or Enter for none:"; then
  model=$reply
  [ -z "$model" ] || { check_model; stages=$((stages + 1)); again+="--model $model"; }
fi
[ -z "$model" ] || pull_model
if [ -z "$serve" ] && ask "Start the server now? [y/N]"; then case $reply in [yY]*) serve=1 stages=$((stages + 1)) ;; esac; fi
[ -z "$serve" ] || start_server
