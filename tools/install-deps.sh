#!/usr/bin/env bash
# Installs what a build (and with "test" also what the tests) needs from Debian's packages. Silent
# when nothing is missing; without the right to install, prints the one command to run.
# "list" as second argument: prints what is missing, one per line, and installs nothing.
set -euo pipefail

# Debian 12's usual Boost is older than Boost.JSON needs to be; later systems have one that will do.
boost=(libboost-dev libboost-json-dev)
! grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release || boost=(libboost1.81-dev libboost-json1.81-dev)
packages=(g++ cmake ninja-build "${boost[@]}" libcli11-dev libutf8proc-dev libssl-dev)
[ "${1:-build}" != test ] || packages+=(libgtest-dev libgmock-dev clang-format)

if ! command -v dpkg-query >/dev/null; then
  echo "This is no Debian system; make sure that these are installed: ${packages[*]}" >&2
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
    missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
[ "${2:-}" != list ] || { printf '%s\n' "${missing[@]}"; exit 0; }

install=(apt-get install -y --no-install-recommends "${missing[@]}")
if [ "$(id -u)" -eq 0 ]; then
  sudo=()
elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
  sudo=(sudo)
else
  echo "Some packages are missing. As root, run:" >&2
  echo "  apt-get update && ${install[*]}" >&2
  exit 1
fi
echo "Installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" "${install[@]}" >/dev/null
