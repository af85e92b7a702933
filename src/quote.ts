/** Text of the user's as a message can show it: quoted, on one line, at most 64 characters of it. */
export function quote(text: string): string {
  const shown = text.length > 64 ? `${text.slice(0, 64)}…` : text
  return JSON.stringify(shown).replace(
    /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
