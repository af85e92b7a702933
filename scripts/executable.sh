#!/bin/sh
# Makes one file of the program and of Node, for machines without Node: `scripts/executable.sh FILE [NODE]`.
#
#   FILE   the executable; its licences go into FILE.licenses
#   NODE   the Node that goes into it, 20.19 or later of the 20 releases, or a later one; default: the one that runs here. It has to
#          be for this machine's architecture
#
# The program runs on Linux with glibc and libstdc++6. strip(1) breaks it: what holds the program is no section that strip knows.
# Prints the size, and how long it takes to print its version, beside Node alone.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?usage: scripts/executable.sh FILE [NODE]}
node=${2:-$(node -p process.execPath)}
mkdir -p "$(dirname "$out")"
out=$(cd "$(dirname "$out")" && pwd)/$(basename "$out")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# dash runs it on no signal otherwise.
trap 'exit 130' INT
trap 'exit 143' TERM

"$node" "$here/scripts/executable/bundle.mjs" "$work"
# The code cache is for this Node alone.
"$node" --experimental-sea-config "$work/sea-config.json" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
cp "$node" "$work/holdfast"
chmod 755 "$work/holdfast"
"$here/node_modules/.bin/postject" "$work/holdfast" NODE_SEA_BLOB "$work/holdfast.blob" \
  --sentinel-fuse NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2 >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; exit 1; }
mv "$work/holdfast" "$out"
rm -rf "$out.licenses"
cp -R "$work/licenses" "$out.licenses"

# Milliseconds, the median of seven.
start() {
  for _ in 1 2 3 4 5 6 7; do
    begin=$(date +%s%N)
    "$@" >/dev/null
    echo $((($(date +%s%N) - begin) / 1000000))
  done | sort -n | sed -n 4p
}
bytes=$(stat -c %s "$out")
echo "$out: holdfast $("$out" --version) in Node $("$node" --version), $((bytes / 1000000)) MB"
echo "start until the version is printed: $(start "$out" --version) ms (Node alone: $(start "$node" -e 0) ms)"
