#!/bin/sh
# `npm run test:node`: builds what the tests run (the control plane's programs once, the image each time), and runs them.
# Arguments are for test/run.mjs: `npm run test:node -- test/node/daemon-set.test.ts`. Where the machine cannot be a node,
# one line says so, and `.ci/run` takes the suite as skipped.
set -eu
cd "$(dirname "$0")/../.."

missing=
[ "$(id -u)" -eq 0 ] || missing=' root'
for program in containerd ctr runc unshare nsenter buildah debootstrap; do
  command -v "$program" >/dev/null || missing="$missing $program"
done
[ -e /sys/fs/cgroup/cgroup.controllers ] || [ -d /sys/fs/cgroup/memory ] || missing="$missing control-groups"
if [ -n "$missing" ]; then
  echo "left out: node tests (this machine lacks$missing)"
  exit 0
fi

test/e2e/control-plane/build.sh etcd kube-apiserver kubeadm kubectl kubelet kube-controller-manager kube-scheduler >/dev/null
test/node/image/build.sh "${HOLDFAST_IMAGES:-dist/image}"
exec node test/run.mjs --suite node "$@"
