#!/usr/bin/env bash
# The proof: the model disk and every mutation of the core against it, the sweep of system calls, readers and writers, hostile
# file systems, and power cuts on real ones. `--long` runs each at full extent. What needs root says so.
set -uo pipefail
cd "$(dirname "$0")/../.."

long=no
if [ "${1:-}" = --long ]; then long=yes; fi
failed=0
part() {
  local name=$1
  shift
  echo "## $name"
  "$@" || { echo "## $name: FAILED"; failed=1; }
}

model=(node --import @tapjs/typescript/import test/crash/run.ts)
power=(node dist/test/crash/power/run.js)
if [ "$long" = yes ]; then
  export HOLDFAST_SWEEP=all HOLDFAST_SWAPS=10000 HOLDFAST_CRASH_ALL=1
  model+=(--long)
  power+=(--exhaustive)
fi

part "model and mutations" "${model[@]}"
part "system calls, readers, hostile file systems" npx tap --jobs=1 --timeout=3600 \
  test/crash/syscalls/*.test.ts test/crash/readers/*.test.ts test/crash/hostile/*.test.ts test/crash/install/*.test.ts
if [ "$(id -u)" -eq 0 ]; then
  part "power cuts" "${power[@]}"
else
  echo "## power cuts: left out, they need root"
fi
exit "$failed"
