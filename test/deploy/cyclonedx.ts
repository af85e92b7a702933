/** The rules of CycloneDX 1.5 for what holdfast's bills of materials have: the fields that it requires, their forms, and no others. */

interface Component {
  readonly 'bom-ref': string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly cpe?: string
}

export interface Sbom {
  readonly metadata: { readonly component: Component }
  readonly components: readonly Component[]
}

type Check = (value: unknown) => boolean
const text: Check = (value) => typeof value === 'string' && value !== ''
const oneOf =
  (...words: readonly unknown[]): Check =>
  (value) =>
    words.includes(value)
const list =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.length > 0 && value.every(check)
/** A map with these fields; `?` at the end of a name: it may be absent. */
const map =
  (fields: Readonly<Record<string, Check>>): Check =>
  (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
    const given = value as Readonly<Record<string, unknown>>
    const known = Object.keys(fields).map((name) => name.replace('?', ''))
    return (
      Object.keys(given).every((name) => known.includes(name)) &&
      Object.entries(fields).every(([name, check]) => {
        const found = given[name.replace('?', '')]
        return found === undefined ? name.endsWith('?') : check(found)
      })
    )
  }
const either =
  (...checks: readonly Check[]): Check =>
  (value) =>
    checks.some((check) => check(value))

const hash = map({
  alg: oneOf('SHA-512'),
  content: (value) => typeof value === 'string' && /^[0-9a-f]{128}$/.test(value),
})
const purl: Check = (value) => typeof value === 'string' && /^pkg:(?:npm|generic)\/[\w.%/-]+@[\w.%-]+$/.test(value)
const common = {
  'bom-ref': text,
  name: text,
  version: text,
  licenses: list(either(map({ license: map({ id: text }) }), map({ expression: text }))),
  purl,
}
const library = { ...common, type: oneOf('library'), 'group?': text, scope: oneOf('required', 'optional') }
const cpe: Check = (value) => typeof value === 'string' && /^cpe:2\.3:a:[\w-]+:[\w.-]+:\d[\d.]*(?::\*){7}$/.test(value)
const { licenses, ...part } = { ...common, 'cpe?': cpe }
const component = either(
  map({ ...library, hashes: list(hash) }),
  map({ ...part, licenses, type: oneOf('platform') }),
  map({ ...part, type: oneOf('library') }),
)
const sbom = map({
  bomFormat: oneOf('CycloneDX'),
  specVersion: oneOf('1.5'),
  version: oneOf(1),
  metadata: map({ component: map({ ...common, type: oneOf('application'), description: text }) }),
  components: list(component),
  dependencies: list(map({ ref: text, dependsOn: (value) => Array.isArray(value) && value.every(text) })),
})

/** What is wrong with a bill of materials; undefined: nothing. Each reference leads to one component, and each component is needed. */
export function faultOf(bill: unknown): string | undefined {
  if (!sbom(bill)) return 'a field that CycloneDX requires is missing, of another form, or unknown'
  const { metadata, components, dependencies } = bill as Sbom & {
    dependencies: readonly { ref: string; dependsOn: readonly string[] }[]
  }
  const refs = [metadata.component, ...components].map((one) => one['bom-ref'])
  if (new Set(refs).size < refs.length) return 'two components have one bom-ref'
  const lost = dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn]).find((ref) => !refs.includes(ref))
  if (lost !== undefined) return `${lost} leads to no component`
  const needed = new Set(dependencies.flatMap(({ dependsOn }) => dependsOn))
  const idle = components.find((one) => !needed.has(one['bom-ref']))
  return idle && `nothing needs ${idle.name}`
}
