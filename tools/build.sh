#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures a build folder if that is needed and builds targets in it. ./run and ./test share build/release: the former
# builds only the program, the latter adds the tests to the same folder, and neither makes the other start anew.
#   tools/build.sh FOLDER TARGET… [-- CMAKE_OPTION…]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

folder=$root/build/${1:?usage: tools/build.sh FOLDER TARGET… [-- CMAKE_OPTION…]}
shift
targets=()
while [[ $# -gt 0 && $1 != -- ]]; do
  targets+=("$1")
  shift
done
[[ $# -eq 0 ]] || shift
options=("-DWEIR_NATIVE_TEXT_OUT=$root/build/native-text" "$@")
mkdir -p "$folder"

# One build at a time in a folder; ninja itself does not look.
exec 9>"$folder/lock"
flock -n 9 || { say "Waiting for another build in ${folder#"$root"/}" && flock 9; }

# A folder that was moved or made with other options is configured again; ninja itself sees changed CMake files.
fingerprint="$root ${options[*]}"
if [[ ! -e $folder/build.ninja || $(cat "$folder/configured_as" 2>/dev/null) != "$fingerprint" ]]; then
  if [[ -e $folder/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
    rm -rf "$folder/CMakeCache.txt" "$folder/CMakeFiles"
  fi
  say "Configuring ${folder#"$root"/}"
  cmake -S "$root" -B "$folder" -G Ninja "${options[@]}" >"$folder/configure.log" 2>&1 || {
    tail -n 25 "$folder/configure.log" >&2
    die "configuring failed" "the whole log is in ${folder#"$root"/}/configure.log; tools/setup.sh build installs what is missing"
  }
  printf '%s' "$fingerprint" >"$folder/configured_as"
fi

say "Building ${targets[*]} in ${folder#"$root"/}"
NINJA_STATUS='[%f/%t, %es] ' ninja -C "$folder" -j "$(usable_processors)" "${targets[@]}" >&2 ||
  die "the build failed" "the first error above says where; tools/setup.sh build installs what is missing"
