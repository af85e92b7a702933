#!/usr/bin/env bash
# The image that the Dockerfile describes, built without a registry of images: `test/node/image/build.sh DIRECTORY` puts there
#
#   holdfast.tar   docker.io/library/holdfast:test
#   base.tar       docker.io/library/holdfast-base:test, what it is built on: for pods that only read
#
# both for `ctr --namespace k8s.io images import`. The image that the Dockerfile is FROM is made here, under its own name: Debian by
# debootstrap, Node and npm from the npm registry. It is kept in ~/.cache/holdfast/image, so that a second run takes seconds.
#
# Needs root, buildah, debootstrap, npm. Prints what was measured; progress goes to standard error.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../../.." && pwd)
out=${1:?usage: test/node/image/build.sh DIRECTORY}
mkdir -p "$out"
out=$(cd "$out" && pwd)

# What can be made here: the version of Node, and the release of Debian.
form='^docker\.io/library/node:([0-9]+\.[0-9]+\.[0-9]+)-([a-z]+)-slim$'
from=$(sed -n 's/^ARG BASE=//p' "$project/Dockerfile")
if ! [[ $from =~ $form ]]; then
  echo "build.sh: cannot make '$from', the base of the Dockerfile: expected docker.io/library/node:X.Y.Z-RELEASE-slim" >&2
  exit 1
fi
node=${BASH_REMATCH[1]} suite=${BASH_REMATCH[2]}
case $(uname -m) in
  x86_64) debian=amd64 npm=x64 ;;
  aarch64) debian=arm64 npm=arm64 ;;
  *) echo "build.sh: no image for $(uname -m)" >&2 && exit 1 ;;
esac

cache=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/image
mkdir -p "$cache"
# What a run that was killed has left.
find "$cache" -maxdepth 1 -name 'work.*' -mmin +120 -exec rm -rf {} +
work=$(mktemp -d "$cache/work.XXXXXX")
export BUILDAH_ISOLATION=chroot TMPDIR="$work"
buildah() { command buildah --root "$work/storage" --runroot "$work/run" "$@"; }
cleanup() {
  buildah umount --all >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap cleanup EXIT
say() { echo "build.sh: $*" >&2; }

# again COMMAND...: tries three times what asks a network, so that a mirror that is away for a moment fails nothing; says what a
# failed try printed.
again() {
  local try log
  log=$(mktemp "$work/again.XXXXXX")
  for try in 1 2 3; do
    if "$@" >"$log" 2>&1 </dev/null; then return 0; fi
    say "try $try of 3: $* failed:"
    cat "$log" >&2
    [ "$try" -eq 3 ] || sleep "$((try * 10))"
  done
  return 1
}

# The base, once for each version of what makes it.
make_base() {
  local root=$work/base
  say "making $from of Debian $suite and Node $node"
  # A try that failed leaves half of it.
  again sh -c 'rm -rf "$3" && debootstrap --variant=minbase --arch="$1" "$2" "$3"' - "$debian" "$suite" "$root"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,info,locale}/*
  again npm pack --pack-destination "$work" "node-linux-$npm@$node" npm@11
  tar xzf "$work/node-linux-$npm-$node.tgz" -C "$root/usr/local" --strip-components=1 package/bin
  mkdir -p "$root/usr/local/lib/node_modules/npm"
  tar xzf "$work"/npm-11.*.tgz -C "$root/usr/local/lib/node_modules/npm" --strip-components=1
  ln -sf ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
  chmod 755 "$root/usr/local/bin/node" "$root/usr/local/lib/node_modules/npm/bin/npm-cli.js"
  local container
  container=$(buildah from scratch)
  buildah add --quiet "$container" "$root" / >/dev/null
  buildah config --cmd node --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
  buildah commit --quiet --rm "$container" "$from" >/dev/null
  rm -rf "$root"
  buildah push --quiet "$from" "docker-archive:$work/base.tar:docker.io/library/holdfast-base:test"
  mv "$work/base.tar" "$1"
}

base=$cache/base-$(declare -f make_base | cat - <(echo "$from $debian") | sha256sum | cut -c1-16).tar
exec 9>"$cache/.lock"
flock 9
if [ -f "$base" ]; then
  buildah pull --quiet "docker-archive:$base" >/dev/null
  buildah tag docker.io/library/holdfast-base:test "$from"
else
  rm -f "$cache"/base-*.tar
  make_base "$base"
fi
flock -u 9

# npm's settings of this machine, its cache and its certificates: seen by the build, not part of the image.
npm config list --json 2>/dev/null | node -e '
  const config = JSON.parse(require("fs").readFileSync(0, "utf8"))
  for (const name of ["registry", "proxy", "https-proxy", "noproxy"]) {
    if (config[name]) console.log(`${name}=${config[name]}`)
  }
  console.log(`cafile=/run/certificates.pem`)
' >"$work/npmrc"
certificates=${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}
npm_cache=$(npm config get cache 2>/dev/null)
mkdir -p "$npm_cache"

say "building the image"
version=$(node -p 'require(process.argv[1]).version' "$project/package.json")
again buildah bud --quiet --pull=never --build-arg VERSION="$version" --secret "id=npmrc,src=$work/npmrc" \
  --volume "$certificates:/run/certificates.pem:ro" --volume "$npm_cache:/root/.npm" \
  --tag holdfast:test "$project"
rm -f "$out/holdfast.tar" "$out/base.tar"
buildah push --quiet holdfast:test "docker-archive:$out/holdfast.tar:docker.io/library/holdfast:test"
cp --reflink=auto "$base" "$out/base.tar"

# What it adds to its base, and how long it takes to print its version.
container=$(buildah from --pull-never holdfast:test)
root=$(buildah mount "$container")
added=$(du -s --block-size=1 --apparent-size "$root/opt/holdfast" | cut -f1)
packed=$(tar -C "$root" -cz opt/holdfast usr/local/bin/holdfast | wc -c)
starts=$(for _ in $(seq 15); do
  begin=$(date +%s%N)
  chroot "$root" /usr/local/bin/node /opt/holdfast/bin/holdfast.js --version >/dev/null
  echo $((($(date +%s%N) - begin) / 100000))
done | sort -n | sed -n 8p)
bare=$(for _ in $(seq 15); do
  begin=$(date +%s%N)
  chroot "$root" /usr/local/bin/node -e 0 >/dev/null
  echo $((($(date +%s%N) - begin) / 100000))
done | sort -n | sed -n 8p)
printed=$(chroot "$root" /usr/local/bin/node /opt/holdfast/bin/holdfast.js --version)
[ "$printed" = "$version" ] || { echo "build.sh: the image says it is '$printed', not '$version'" >&2; exit 1; }
echo "holdfast $printed on $from ($debian)"
whole=$(du -sx --block-size=1 --apparent-size "$root" | cut -f1)
for program in sh npm env; do
  [ -z "$(find "$root" -name "$program" -print -quit)" ] || { echo "build.sh: the image has $program" >&2; exit 1; }
done
echo "size: $((whole / 1000000)) MB, of it holdfast $((added / 1000)) kB, $((packed / 1000)) kB packed; Debian with Node: $(($(stat -c %s "$base") / 1000000)) MB"
echo "start until the version is printed: $((starts / 10)).$((starts % 10)) ms (node alone: $((bare / 10)).$((bare % 10)) ms), median of 15"
