/** C0 but for tab and newline, DEL, C1, marks and overrides of the direction of writing, and separators of lines. */
const unprintable = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** The text with what a terminal would obey, or a reader not see, as `\u001b`. Letters of any language stay. In JSON it means the same. */
export function escaped(text: string): string {
  return text.replace(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Text of the user's as a message can show it: quoted, on one line, at most 64 characters of it. */
export function quote(text: string): string {
  return escaped(JSON.stringify(text.length > 64 ? `${text.slice(0, 64)}…` : text))
}

/** `a, b and c` for people; of more than `most`, `a, b, c and 2 more`. */
export function listed(names: readonly string[], most = 5): string {
  const shown = names.slice(0, most)
  const more = names.length - shown.length
  const all = more > 0 ? [...shown, `${more} more`] : shown
  const last = all.pop() ?? ''
  return all.length === 0 ? last : `${all.join(', ')} and ${last}`
}

/** `Secret kube-system/serving-cert`: the same text in logs, errors, status and as a map key. */
export function objectName({ kind, namespace, name }: Readonly<Record<'kind' | 'namespace' | 'name', string>>): string {
  return `${kind} ${namespace}/${name}`
}
