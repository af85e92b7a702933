#!/usr/bin/env bash
# The proof: the model disk, generated histories, programs killed under load, mutations of the program by hand and by rule, the sweep of
# system calls, readers and writers, hostile file systems, and power cuts on real ones. Each random choice comes from HOLDFAST_SEED, 1
# unless it is set, so that two runs of one program agree; the order of the mutations is new each time, and its seed is printed. `--brief`
# is for a slow or busy machine; `--no-model` leaves the model disk to a run of its own. Suites that need root say so.
set -uo pipefail
cd "$(dirname "$0")/../.."

brief=no
model=yes
for option in "$@"; do
  case $option in
    --brief) brief=yes ;;
    --no-model) model=no ;;
    *) echo "usage: test/crash/all.sh [--brief] [--no-model]" && exit 2 ;;
  esac
done
export HOLDFAST_SEED=${HOLDFAST_SEED:-1}
echo "seed $HOLDFAST_SEED"

. test/crash/parts.sh

crash=(node dist/test/crash/run.js)
# Mutations are drawn anew each time, for as many seconds.
mutations=(--no-model --draw 150)
power=(node dist/test/crash/power/run.js --seed "$HOLDFAST_SEED")
if [ "$brief" = yes ]; then
  export HOLDFAST_SWEEP=cheap
  power+=(--quick)
  mutations=(--no-model --draw 100)
fi

# They take the shorter of the two lanes.
generated_mutants() {
  if [ "$(id -u)" -eq 0 ]; then
    mutants=dist/test/crash/mutants
    part "generated mutants, drawn as always" node "$mutants/draw.js" --seed "$HOLDFAST_SEED" --seconds 12 --patience 60
    # Two of a new draw may live: hundreds of mutants of today's core were put before no test yet.
    part "generated mutants, drawn anew" node "$mutants/draw.js" --seed "$RANDOM" --seconds 10 --patience 60 --tolerate 2
  else
    echo "left out: generated mutants, power cuts (they need root)"
  fi
}

# Two processors are busy all the time: one with the model and the mutations, one with the parts that wait for strace, mounts and programs.
# The power cuts wait for their disks more than they compute.
{
  if [ "$model" = yes ]; then part "the model disk" "${crash[@]}" --no-mutations; fi
  part "mutations" "${crash[@]}" "${mutations[@]}"
  if [ "$model" = no ]; then generated_mutants; fi
} >"$logs/model" 2>&1 &
beside=($!)
if [ "$(id -u)" -eq 0 ]; then
  part "power cuts" nice "${power[@]}" >"$logs/power" 2>&1 &
  beside+=($!)
fi
part "system calls, readers, hostile file systems" node test/run.mjs --suite crash
# Of these, `npm test` draws a sixth.
plays=(test/durable/failing-calls.test.ts test/durable/interrupted-calls.test.ts)
part "calls that fail or are interrupted" env HOLDFAST_PLAYS=all node test/run.mjs "${plays[@]}"
# For some seconds each, from the fixed seed; and on the model from a new one.
histories=(node dist/test/crash/histories/main.js)
places=model,ext4,xfs,btrfs,ext4-log,xfs-log,btrfs-log
fresh=$((RANDOM * 32768 + RANDOM))
part "generated histories, seed $HOLDFAST_SEED" "${histories[@]}" --where "$places" --seed "$HOLDFAST_SEED" --seconds 3
part "generated histories, seed $fresh" "${histories[@]}" --seed "$fresh" --seconds 3
# Lives of two or three targets, on the model: from the seed that all runs have, and from one that none had.
part "drawn lives, seed $HOLDFAST_SEED" "${histories[@]}" --lives 20000 --seed "$HOLDFAST_SEED" --seconds 15
part "drawn lives, seed $fresh" "${histories[@]}" --lives 20000 --seed "$fresh" --seconds 15
part "kill and recover under load" node dist/test/crash/load/main.js --seed "$HOLDFAST_SEED" --rounds 2
if [ "$model" = yes ]; then generated_mutants; fi
wait "${beside[@]}"
cat "$logs"/{model,power} 2>/dev/null
conclude_parts
echo "## all of it: $SECONDS s"
exit "$failed"
