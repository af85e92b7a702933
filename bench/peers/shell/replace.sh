#!/bin/sh
# A careful script: `replace.sh FROM TARGET…`. Each directory is copied beside its target and synced, moved into its place, and the move
# is synced. Between the two moves there is no target.
set -eu
from=$1
shift
for target in "$@"; do
  rm -rf "$target.new" "$target.old"
  cp -R "$from" "$target.new"
  sync -f "$target.new"
  if [ -e "$target" ]; then mv -T "$target" "$target.old"; fi
  mv -T "$target.new" "$target"
  sync -f "$target"
  rm -rf "$target.old"
done
