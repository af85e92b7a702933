/** `a, b and c` for people; of more than `most`, `a, b, c and 2 more`. */
export function listed(names: readonly string[], most = 5): string {
  const shown = names.slice(0, most)
  const more = names.length - shown.length
  const all = more > 0 ? [...shown, `${more} more`] : shown
  const last = all.pop() ?? ''
  return all.length === 0 ? last : `${all.join(', ')} and ${last}`
}
