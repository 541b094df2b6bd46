# SPDX-License-Identifier: Apache-2.0
# Sourced by ./run, ./test, .ci/run and the scripts here: how they speak. Everything goes to standard error, so that the
# output of a command started through ./run stays clean.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

if [[ -t 2 ]]; then bold=$'\e[1m' red=$'\e[31m' plain=$'\e[0m'; else bold='' red='' plain=''; fi

say() { printf '%s==>%s %s\n' "$bold" "$plain" "$*" >&2; }

# die MESSAGE [NEXT STEP]
die() {
  printf '%serror:%s %s\n' "$red" "$plain" "$1" >&2
  [[ $# -lt 2 ]] || printf '  next: %s\n' "$2" >&2
  exit 1
}

# Processors this container may use: the affinity mask cut by the cgroup's quota, since more jobs than that only thrash.
usable_processors() {
  local count quota period
  count=$(nproc)
  if [[ -r /sys/fs/cgroup/cpu.max ]] && read -r quota period </sys/fs/cgroup/cpu.max && [[ $quota != max ]]; then
    quota=$(((quota + period - 1) / period))
    ((quota < count)) && count=$quota
  fi
  echo "${WEIR_JOBS:-$count}"
}
