#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing from deps/debian.txt. When nothing is missing it only asks dpkg: no root, no network, no wait.
#   tools/setup.sh SECTION…      build, test, check
#   WEIR_SETUP=skip              leaves the machine alone (packages were installed some other way)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[[ ${WEIR_SETUP:-} == skip ]] && exit 0
[[ $# -gt 0 ]] || die "no section given" "tools/setup.sh build [test] [check]"

# Packages of the wanted sections, one a line.
wanted() {
  local section line
  for section in "$@"; do
    while read -r line; do
      if [[ $line == "[$section] "* ]]; then echo "${line#* }"; fi
    done <"$root/deps/debian.txt"
  done
}

# A Rust toolchain that is new enough replaces Debian's packages: they conflict with rustup's. CMake looks in the same places.
has_rust() {
  local version
  version=$(PATH=${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:$PATH && rustc --version >/dev/null 2>&1 && cargo --version 2>/dev/null) || return 1
  [[ $version =~ ^cargo\ ([0-9]+)\.([0-9]+) ]] || return 1
  ((BASH_REMATCH[1] > 1 || BASH_REMATCH[2] >= 87))
}

# Node from elsewhere brings npm along, and Debian's npm conflicts with it.
has_node() { node --version >/dev/null 2>&1 && npm --version >/dev/null 2>&1; }

missing_packages() {
  local installed package
  mapfile -t packages < <(wanted "$@")
  [[ ${#packages[@]} -gt 0 ]] || die "deps/debian.txt has no section named $*"
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null || true)
  for package in "${packages[@]}"; do
    case $package in
      cargo-web | rustc-web) has_rust && continue ;;
      nodejs | npm) has_node && continue ;;
    esac
    grep -qx "installed $package" <<<"$installed" || echo "$package"
  done
}

distribution() { (. /etc/os-release 2>/dev/null && echo "${ID:-unknown} ${VERSION_ID:-}") || echo unknown; }

command -v dpkg-query >/dev/null && [[ $(distribution) == "debian 12" ]] ||
  die "the set-up knows Debian 12, and this is $(distribution)" \
    "install the packages of deps/debian.txt by hand, then run this again with WEIR_SETUP=skip"

mapfile -t missing < <(missing_packages "$@")
[[ ${#missing[@]} -gt 0 ]] || exit 0

say "Installing ${#missing[@]} Debian packages: ${missing[*]}"
as_root=()
if [[ $EUID -ne 0 ]]; then
  command -v sudo >/dev/null || die "installing packages needs root, and there is no sudo" "as root: apt-get install ${missing[*]}"
  as_root=(sudo)
  if [[ ! -t 0 ]]; then
    sudo -n true 2>/dev/null || die "sudo asks for a password, and there is no terminal" "as root: apt-get install ${missing[*]}"
  fi
fi

mkdir -p "$root/build"
log=$root/build/setup.log
: >"$log"

# Runs apt-get with its output in the log, and shows one line for every 20 packages.
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null 2>&1 |
    tee -a "$log" | awk '/^Need to get/ {print "  " $0} /^Setting up/ {if (++n % 20 == 0) print "  " n " packages set up"; fflush()}' >&2
}

apt update || die "apt-get update failed: $(tail -n 1 "$log")" "check the network and /etc/apt/sources.list (log: build/setup.log)"
apt install --no-install-recommends "${missing[@]}" ||
  die "apt-get install failed: $(grep -E '^E:' "$log" | tail -n 1)" "read build/setup.log; Debian's security repository must be enabled for cargo-web and clang-19"
