#!/bin/sh
# Finds or builds programs of the control plane: `build.sh etcd kube-apiserver kubectl` prints the path of each, one a line.
#
# A program is taken from KUBEBUILDER_ASSETS where that directory has it (the convention of Kubernetes test suites), else
# from a cache outside of the tree, keyed by everything it is built from; what the cache lacks is built with Go, once.
# Concurrent callers wait for each other, and a program appears in the cache only when it is complete.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
key=$(cd "$here" && cat go.mod go.sum */main.go | sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/holdfast/control-plane/$key

find_go() {
  command -v go || { [ -x /usr/local/go/bin/go ] && echo /usr/local/go/bin/go; } || {
    echo "npm run test:e2e needs Go (https://go.dev/dl) to build $1, or KUBEBUILDER_ASSETS: a directory with etcd, kube-apiserver and kubectl" >&2
    exit 1
  }
}

# download GO DIRECTORY MODULES PACKAGE: its modules. A proxy that is away for a moment fails nothing.
download() {
  for pause in 5 20 0; do
    (cd "$2" && "$1" list -modfile "$3" -deps "$4" 9>&- >/dev/null) && return
    sleep "$pause"
  done
  return 1
}

for program in "$@"; do
  if [ -x "${KUBEBUILDER_ASSETS:-}/$program" ]; then
    echo "$KUBEBUILDER_ASSETS/$program"
    continue
  fi
  cached=$program directory=$here modules=$here/go.mod source=$program
  # NAME-1.35 is NAME with the modules of NAME/1.35.mod, of another version of Kubernetes.
  if [ -f "$here/${program%-*}/${program##*-}.mod" ]; then
    source=${program%-*}
    modules=$here/$source/${program##*-}.mod
  fi
  package=./$source version=$(sed -n 's|^[[:space:]]*k8s.io/kubernetes v|v|p' "$modules")
  # A program of this project's own changes without the others.
  if [ -f "$here/$source/program.go" ]; then
    cached=$program-$(cat "$here/$source/program.go" "$modules" "${modules%.mod}.sum" | sha256sum | cut -c1-16)
  fi
  # A module of its own has no say in what the others are built from.
  if [ -f "$here/$program/go.mod" ]; then
    directory=$here/$program package=tool modules=$here/$program/go.mod
    cached=$program-$(cat "$directory/go.mod" "$directory/go.sum" | sha256sum | cut -c1-16)
  fi
  if ! [ -x "$cache/$cached" ]; then
    go=$(find_go "$program")
    mkdir -p "$cache"
    exec 9>"$cache/.lock"
    flock 9
    if ! [ -x "$cache/$cached" ]; then
      echo "building $program into $cache (once; kube-apiserver takes about four minutes on two cores)" >&2
      staged=$cache/.$program.$$
      trap 'rm -f "$staged"' EXIT
      # dash runs it on no signal otherwise.
      trap 'exit 130' INT
      trap 'exit 143' TERM
      download "$go" "$directory" "$modules" "$package"
      (cd "$directory" && nice "$go" build -modfile "$modules" -trimpath -o "$staged" \
        -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" "$package" 9>&-) >&2
      mv "$staged" "$cache/$cached"
    fi
    exec 9>&-
  fi
  echo "$cache/$cached"
done
