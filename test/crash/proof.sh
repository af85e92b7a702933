#!/usr/bin/env bash
# The whole of the generated histories: 52,000 crash states of the model disk, and of each real file system 510 by forced shutdown and 200
# by the log of its writes; 20,000 drawn lives on the model disk, and 300 on each real file system; then 40 rounds of kill and recover under
# load on each. And each field of a Pod with each of 184 values, which kubelet's own decoder judges. From HOLDFAST_SEED, 1 unless it is set. As root.
set -uo pipefail
cd "$(dirname "$0")/../.."

seed=${HOLDFAST_SEED:-1}
histories=(node dist/test/crash/histories/main.js --seed "$seed")
echo "generated histories, seed $seed, $(date -u +%F), Linux $(uname -r), Node $(node --version)"
failed=0
"${histories[@]}" --where model --states 52000 || failed=1
"${histories[@]}" --where ext4,xfs,btrfs --states 510 || failed=1
"${histories[@]}" --where ext4-log,xfs-log,btrfs-log --states 200 || failed=1
"${histories[@]}" --where model --lives 20000 || failed=1
"${histories[@]}" --where ext4,xfs,btrfs --lives 300 || failed=1
HOLDFAST_FIELDS=all node dist/test/e2e/kubelet-decode.test.js || failed=1
HOLDFAST_FIELDS=all node dist/test/e2e/kubelet-mistakes.test.js || failed=1
# What a real kube-state-metrics makes of the nodes' reports: it takes minutes to build.
node dist/test/e2e/kube-state-metrics.js || failed=1
node dist/test/crash/load/main.js --seed "$seed" --rounds 40 || failed=1
# The package in projects of its users, with tools that are too large for CI.
packed=$(mktemp -d)
scripts/release.sh "$packed" package && test/smoke/projects.sh "$packed"/holdfast-[0-9]*.tgz node16 bundler esbuild jest vitest bun || failed=1
rm -rf "$packed"
exit "$failed"
