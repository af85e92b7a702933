/**
 * What a target may hold: one of some whole contents. A content is one text, equal for equal trees; how an engine reads it, from a model
 * disk or from a directory, is its own business.
 */

/** The fault of a target that holds `found`; `allowed` are the texts of the contents that it may hold, by their names. */
export function faultOfContent(
  target: string,
  found: string,
  allowed: ReadonlyMap<string, string>,
  nameOf: (text: string) => string | undefined = () => undefined,
): string | undefined {
  if ([...allowed.values()].includes(found)) return undefined
  const name = nameOf(found)
  if (name !== undefined) return `${target} holds ${name}, and may only hold ${[...allowed.keys()].join(' or ')}`
  const differences = [...allowed].map(([wanted, text]) => `not ${wanted} (${differenceOf(found, text) ?? ''})`)
  return `${target} is torn or mixed: ${differences.join(', ')}`
}

/** The first line of a content that another one does not have; undefined: they are the same. */
export function differenceOf(found: string, wanted: string): string | undefined {
  if (found === wanted) return undefined
  if (found === '') return 'it is missing'
  if (wanted === '') return 'it is there'
  const [has] = linesWithout(found, wanted)
  const [lacks] = linesWithout(wanted, found)
  return [has && `it has ${brief(has)}`, lacks && `it lacks ${brief(lacks)}`].filter(Boolean).join(', ')
}

function linesWithout(text: string, other: string): string[] {
  const lines = new Set(other.split('\n'))
  return text.split('\n').filter((line) => !lines.has(line))
}

/** Without what a disk shows in the place of lost data, of which there may be much. */
function brief(line: string): string {
  const short = line.replace(/\0+/g, '(zeroes)')
  return short.length <= 300 ? short : `${short.slice(0, 300)}… (${line.length} characters)`
}

/**
 * The fault of the names that lead into a target in the form of links: `links` are there, `own` belong to its content. `others` are the
 * names of other contents that a crash may leave there. Without such contents a call has succeeded, and the target has no further link.
 */
export function faultOfLinks(
  target: string,
  links: ReadonlySet<string>,
  own: ReadonlySet<string>,
  others: readonly ReadonlySet<string>[],
): string | undefined {
  const lost = [...own].filter((link) => others.every((other) => other.has(link)) && !links.has(link))
  if (lost.length > 0) return `the link ${lost.join(', ')} of ${target} is lost`
  const stale = others.length > 0 ? [] : [...links].filter((link) => !own.has(link))
  return stale.length > 0 ? `${target} has the link ${stale.join(', ')}, too` : undefined
}
