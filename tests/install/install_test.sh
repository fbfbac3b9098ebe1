#!/usr/bin/env bash
# install.sh into temporary prefixes: from a build, from a release, again, and away again; and the
# Debian package. usage: install_test.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
source_dir=$(realpath "$1")
build_dir=$(realpath "$2")
work=$(mktemp -d)
server=
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
export HOME=$work/home
mkdir -p "$HOME"

wrong() {
  echo "WRONG: $1" >&2
  exit 1
}
has() { [ -e "$1" ] || wrong "$1 is missing"; }
lacks() { [ ! -e "$1" ] || wrong "$1 is still there"; }
says() { grep -qF -- "$2" <<<"$1" || wrong "expected \"$2\" in: $1"; }
install() { "$source_dir/install.sh" --yes "$@" 2>&1; }
# Runs what must fail with the given status, and gives what it said.
refused() {
  local status=$1 said code=0
  shift
  said=$("$@" 2>&1) || code=$?
  [ "$code" -eq "$status" ] || wrong "status $code instead of $status: $*: $said"
  printf '%s' "$said"
}

echo "== from a build"
prefix=$work/prefix
mkdir -p "$prefix/bin"
echo mine >"$prefix/bin/other"
said=$(install --prefix "$prefix" --build-dir "$build_dir") || wrong "$said"
says "$said" "[4/4]"
has "$prefix/bin/slipstream"
has "$prefix/share/slipstream/minnow/config.json"
has "$prefix/share/bash-completion/completions/slipstream"
has "$prefix/share/zsh/site-functions/_slipstream"
has "$prefix/share/fish/vendor_completions.d/slipstream.fish"
unit=$(find "$prefix" -path '*systemd*' -name slipstream.service)
grep -q "^ExecStart=\"$prefix/bin/slipstream\" serve" "$unit" || wrong "the unit does not start $prefix/bin/slipstream"
# What the unit reads must be there, or it could not start.
config=$(sed -n 's/^ExecStart=.*--config "\{0,1\}\([^"]*serve.conf\).*/\1/p' "$unit")
has "${config/\%h/$HOME}"
man=$prefix/share/man/man1/slipstream.1
for verb in RUN SERVE PULL "BENCH LADDER" "CONVERT CHECK" COMPLETIONS; do
  grep -qx ".SH \"SLIPSTREAM $verb\"" "$man" || wrong "the man page does not know $verb"
done
says "$("$prefix/bin/slipstream" inspect minnow 2>&1)" "$prefix"

echo "== again"
find "$prefix" -type f | sort >"$work/before"
echo stale >"$prefix/share/slipstream/old-file"
echo share/slipstream/old-file >>"$prefix/share/slipstream/installed-files"
said=$(install --prefix "$prefix" --build-dir "$build_dir") || wrong "$said"
lacks "$prefix/share/slipstream/old-file"
find "$prefix" -type f | sort | diff "$work/before" - || wrong "a second run changed the files"

echo "== the server"
conf=$HOME/.config/slipstream
[ "$(id -u)" -ne 0 ] || conf=$prefix/etc/slipstream
port=$((20000 + RANDOM % 20000))
echo "port = $port" >"$conf/serve.conf"
setsid "$source_dir/install.sh" --yes --serve --prefix "$prefix" --build-dir "$build_dir" >"$work/serve.log" 2>&1 &
server=$!
for _ in $(seq 600); do
  ! grep -q "http://127.0.0.1:$port" "$work/serve.log" || break
  kill -0 $server 2>/dev/null || wrong "the server did not start: $(cat "$work/serve.log")"
  sleep 0.2
done
says "$(cat "$work/serve.log")" "http://127.0.0.1:$port"
says "$(cat "$work/serve.log")" "enable --now $unit"
kill -TERM -- -$server
wait $server 2>/dev/null || true
server=
rm -rf "$conf"

echo "== releases"
(cd "$work" && cpack --config "$build_dir/CPackConfig.cmake" -G TGZ >/dev/null && cpack --config "$build_dir/CPackConfig.cmake" -G DEB >/dev/null)
archive=$(find "$work" -maxdepth 1 -name 'slipstream-*.tar.gz')
has "$archive"
said=$(install --prefix "$work/released" --release "$archive") || wrong "$said"
has "$work/released/bin/slipstream"
has "$work/released/share/man/man1/slipstream.1"
if command -v dpkg-deb >/dev/null; then
  package=$(find "$work" -maxdepth 1 -name '*.deb')
  has "$package"
  listing=$(dpkg-deb -c "$package")
  for file in ./usr/bin/slipstream ./usr/lib/systemd/system/slipstream.service \
    ./usr/share/man/man1/slipstream.1 ./usr/share/slipstream/minnow/config.json \
    ./usr/share/doc/slipstream/THIRD-PARTY-NOTICES; do
    says "$listing" "$file"
  done
  says "$(dpkg-deb -f "$package" Architecture)" "$(dpkg --print-architecture)"
  says "$(dpkg-deb -f "$package" Depends)" libc6
fi

echo "== a model, in a folder with a blank"
# A program that pulls when it is allowed to, and nothing else.
mkdir -p "$work/stand-in/bin" "$work/stand-in/share/slipstream"
printf '#!/bin/sh\n[ "$1" != pull ] || [ -e "%s/hub-works" ]\n' "$work" >"$work/stand-in/bin/slipstream"
chmod 755 "$work/stand-in/bin/slipstream"
cp "$source_dir"/packaging/serve.conf "$source_dir"/packaging/*.service "$work/stand-in/share/slipstream"
tar -czf "$work/stand-in.tar.gz" -C "$work" stand-in
blank="$work/a blank"
with_model() { "$source_dir/install.sh" --yes --prefix "$blank" --release "$work/stand-in.tar.gz" --model "$@"; }
said=$(refused 1 with_model org/name)
says "$said" "org/name was not pulled; to go on with it:"
says "$said" "install.sh --yes --prefix $(printf %q "$blank") --release $work/stand-in.tar.gz --model org/name"
conf=$HOME/.config/slipstream
[ "$(id -u)" -ne 0 ] || conf=$blank/etc/slipstream
! grep -q '^model' "$conf/serve.conf" || wrong "a model is served that was not pulled"
touch "$work/hub-works"
said=$(with_model org/name 2>&1) || wrong "$said"
said=$(with_model org/name 2>&1) || wrong "$said"
[ "$(grep -c '^model = org/name$' "$conf/serve.conf")" -eq 1 ] || wrong "settings: $(cat "$conf/serve.conf")"
says "$(with_model org/other 2>&1)" "names, not org/other"
unit=$(find "$blank" -path '*systemd*' -name slipstream.service)
grep -qF "ExecStart=\"$blank/bin/slipstream\" serve" "$unit" || wrong "$(grep ExecStart "$unit")"
rm -rf "$conf"

echo "== refusals"
says "$(refused 1 "$source_dir/install.sh" --yes --model name)" "a model is org/name"
says "$(CXX=no-such-compiler refused 1 "$source_dir/install.sh" --yes --prefix "$work/p" --build-dir "$build_dir")" "no-such-compiler is not installed"
says "$(refused 2 "$source_dir/install.sh" --nonsense)" "there is no option --nonsense"
head -c 1000 "$archive" >"$work/cut.tar.gz"
says "$(refused 1 "$source_dir/install.sh" --yes --prefix "$work/cut" --release "$work/cut.tar.gz")" "no whole archive"
says "$(refused 1 "$source_dir/install.sh" --uninstall --prefix "$work/nothing")" "no installation"
if [ "$(id -u)" -ne 0 ]; then
  mkdir -m 555 "$work/closed"
  says "$(refused 1 "$source_dir/install.sh" --yes --prefix "$work/closed/p")" "sudo ./install.sh"
fi

echo "== away again"
"$source_dir/install.sh" --uninstall --prefix "$prefix" >/dev/null
lacks "$prefix/bin/slipstream"
lacks "$prefix/share"
[ "$(find "$prefix" -type f)" = "$prefix/bin/other" ] || wrong "left behind: $(find "$prefix" -type f)"
echo "install.sh works"
