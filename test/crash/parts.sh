# How `all.sh` runs its parts, and says which have failed. It sources this file; test/runner/ci.test.ts shows it parts that fail, die and lose
# their logs.

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=0

# part NAME COMMAND...
part() {
  local name=$1 start=$SECONDS said
  shift
  echo "$name" >>"$logs/begun"
  if "$@"; then said="good, $((SECONDS - start)) s"
  else said="FAILED, $((SECONDS - start)) s" failed=1; fi
  echo "## $name: $said"
  echo "$name: $said" >>"$logs/parts"
}

# conclude_parts: sets `failed` where a part has failed, was killed before it could say so, or has lost its log.
conclude_parts() {
  local name
  while IFS= read -r name; do
    grep -qE "^$name: good, [0-9]+ s$" "$logs/parts" || { echo "## $name: FAILED, or never ended" && failed=1; }
  done <"$logs/begun" || failed=1
  echo "## the parts, of which some ran side by side"
  cat "$logs/parts" || failed=1
}
