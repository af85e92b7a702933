#!/usr/bin/env bash
# README's demo: the agent keeps what two example objects say, until Ctrl-C. It touches nothing outside of a temporary directory.
set -euo pipefail
program=$(cd "$(dirname "$0")/.." && pwd)
root=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-demo-XXXXXX")
web=$root/node/web
pids=()
ended() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" || true; done
  rm -rf "$root"
  printf '\nThe demo has ended; it removed %s\n' "$root"
}
trap ended EXIT
trap 'exit 0' INT TERM
trap 'exit 129' HUP
holdfast() { node "$program/bin/holdfast.js" "$@"; }
# An agent that has ended publishes nothing, and has said why.
goes_on() {
  kill -0 "$agent" 2>/dev/null || exit 1
  sleep 0.05
}
shown() {
  (cd "$web" && ls -liR)
  printf '\n'
  holdfast history "$web"
}

cp -r "$program/scripts/demo/." "$root"
mkdir "$root/objects"
mv "$root/objects.yaml" "$root/objects/"
printf '1. A Secret and a ConfigMap, as files, become one directory\n\n'
node "$program/bin/holdfast.js" agent --config "$root/holdfast.yaml" --log-level warn --log-format text &
agent=$!
pids+=("$agent")
until [ -e "$web" ]; do goes_on; done
shown

printf '\n2. User and password change, while a program keeps reading them\n\n'
# It opens the directory once for each pair, and again if that was replaced meanwhile.
reader() {
  local reads=0 mixed=0 user='' password=''
  trap 'printf "The program read %s pairs of user and password meanwhile; %s of them did not match\n" "$reads" "$mixed"; exit' TERM
  while true; do
    cd "$web/database" && user=$(<user) && password=$(<password) || continue
    reads=$((reads + 1))
    [ "$password" = "of-$user" ] || mixed=$((mixed + 1))
  done 2>/dev/null
}
reader &
pids=("$!" "${pids[@]}")
sleep 1
sed 's/web-1/web-2/g' "$root/objects/objects.yaml" | holdfast write "$root/objects/objects.yaml" --keep-attributes
until grep -qs web-2 "$web/database/user"; do goes_on; done
sleep 0.2
kill "${pids[0]}" && wait "${pids[0]}" || true
pids=("$agent")
shown
cat <<END

All inodes are new, and the old ones are gone: holdfast never writes into a file that a program may be reading.

3. Look at it

  alias holdfast="node '$program/bin/holdfast.js'"
  holdfast status --config $root/holdfast.yaml
  holdfast verify --config $root/holdfast.yaml
  holdfast diff $web
  rm $web/web.conf; kill -HUP $agent     # the agent repairs it
  sed -i 's/web-2/web-3/g' $root/objects/objects.yaml

Ctrl-C ends the demo.
END
wait "$agent"
