#!/bin/sh
# k8s-sidecar as it runs in a pod: `watch.sh INSTALLED KUBECONFIG NAMESPACE DIRECTORY`. It reads the name of its namespace from a pod's own
# path, which it finds in a private mount namespace.
set -eu
export KUBECONFIG=$2 NAMESPACE=$3 FOLDER=$4 LABEL=keep LABEL_VALUE=true RESOURCE=secret METHOD=WATCH LOG_LEVEL=ERROR
export INSTALLED=$1
# shellcheck disable=SC2016
exec unshare --mount --propagation private sh -euc '
  mount -t tmpfs pod /run
  mkdir -p /run/secrets/kubernetes.io/serviceaccount
  printf %s "$NAMESPACE" >/run/secrets/kubernetes.io/serviceaccount/namespace
  cd "$INSTALLED/checkout/src"
  exec "$INSTALLED/python/bin/python" -u sidecar.py'
