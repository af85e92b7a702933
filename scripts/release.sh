#!/bin/sh
# Makes the files of a release, without a network: `scripts/release.sh DIRECTORY [PART...]`, after `npm ci`. The image is the Dockerfile's.
#
#   package      holdfast-VERSION.tgz, for npm, and holdfast.cdx.json, what it is made of (CycloneDX)
#   chart        holdfast-chart-VERSION.tgz, for helm; HELM names the program (default: helm)
#   executable   holdfast-VERSION-linux-ARCH.tar.gz, with its licences, for this machine's architecture
#
# Without a PART it makes none. SHA256SUMS lists what DIRECTORY has then. Each file that names the version has to name the same; with TAG in
# the environment, such as v0.2.0, that is the tag's, and CHANGELOG.md has a section for it.
set -eu
umask 022

usage='usage: scripts/release.sh DIRECTORY [package|chart|executable]...'
out=${1:?$usage}
shift
here=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here"
refuse() { echo "scripts/release.sh: $*" >&2; exit 2; }

version=$(node -p 'require("./package.json").version')
names() { grep -q "$2" "$1" || refuse "$1 does not name the version $version of package.json"; }
names deploy/helm/holdfast/Chart.yaml "^version: $version\$"
names deploy/helm/holdfast/Chart.yaml "^appVersion: $version\$"
names Dockerfile "^ARG VERSION=$version\$"
names deploy/base/daemonset.yaml "image: holdfast:$version\$"
names deploy/components/seccomp/kustomization.yaml "image: holdfast:$version\$"
names deploy/static-pod/holdfast-pod.yaml "image: .*holdfast:$version\$"
if [ -n "${TAG:-}" ]; then
  [ "$TAG" = "v$version" ] || refuse "the tag is $TAG, and package.json has $version"
  grep -q "^## $version\\( \\|\$\\)" CHANGELOG.md || refuse "CHANGELOG.md has no section \"## $version\""
fi

for part in "$@"; do
  case $part in
    package)
      npm pack --silent --pack-destination "$out" >/dev/null
      cp dist/licenses/holdfast.cdx.json "$out/"
      ;;
    chart)
      work=$(mktemp -d)
      "${HELM:-helm}" package deploy/helm/holdfast --destination "$work" >/dev/null
      mv "$work/holdfast-$version.tgz" "$out/holdfast-chart-$version.tgz"
      rmdir "$work"
      ;;
    executable)
      case $(uname -m) in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) refuse "no name for $(uname -m)" ;; esac
      work=$(mktemp -d)
      scripts/executable.sh "$work/holdfast"
      tar -C "$work" --owner=0 --group=0 -czf "$out/holdfast-$version-linux-$arch.tar.gz" holdfast holdfast.licenses
      rm -r "$work"
      ;;
    *) refuse "$usage" ;;
  esac
done
cd "$out"
rm -f SHA256SUMS
sums=$(find . -maxdepth 1 -type f -printf '%P\n' | LC_ALL=C sort | xargs -r sha256sum)
[ -z "$sums" ] || echo "$sums" >SHA256SUMS
