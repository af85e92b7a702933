/**
 * A file of the agent that says something of paths, as one JSON object. `lost`: what follows from its removal.
 * @throws Error where it is none
 */
export function parsePaths<Said>(
  text: string,
  file: string,
  isSaid: (value: unknown) => value is Said,
  lost: string,
): Map<string, Said> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const entries = Object.entries(value)
    if (entries.every((entry): entry is [string, Said] => isSaid(entry[1]))) return new Map(entries)
  }
  throw new Error(`${file} is not a file of the agent: remove it; ${lost}`)
}
