/*
 * Writes src/static-pods/pod/pod-types.ts: the type of each field of a Pod, from Kubernetes' own OpenAPI of the versions whose kubelet
 * judges manifests in the tests (the modules of test/e2e/control-plane). `--check` writes nothing, and fails where the file is another.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as prettier from 'prettier'

const root = join(import.meta.dirname, '..')
const file = 'src/static-pods/pod/pod-types.ts'
const specification = 'api/openapi-spec/swagger.json'
const first = 'io.k8s.api.core.v1.Pod'

/** Of definitions that stand for one value. */
const named = new Map([
  ['io.k8s.apimachinery.pkg.api.resource.Quantity', 'quantity'],
  ['io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1', 'any'],
  ['io.k8s.apimachinery.pkg.apis.meta.v1.Time', 'time'],
  ['io.k8s.apimachinery.pkg.util.intstr.IntOrString', 'intOrText'],
])

/** Of a schema's type and format. */
const plain = new Map([
  ['string', 'text'],
  ['boolean', 'flag'],
  ['integer int32', 'int32'],
  ['integer int64', 'int64'],
])

/** The oldest first. */
function sources() {
  const command = existsSync('/usr/local/go/bin/go') ? '/usr/local/go/bin/go' : 'go'
  const cwd = join(root, 'test/e2e/control-plane')
  return ['kubelet-decode/1.35.mod', 'go.mod'].map((modules) => {
    // It fetches the module where it is missing, and prints its place and version.
    const wanted = /^\s*k8s\.io\/kubernetes (v\S+)$/m.exec(readFileSync(join(cwd, modules), 'utf8'))[1]
    const answer = execFileSync(command, ['mod', 'download', '-json', `k8s.io/kubernetes@${wanted}`], {
      cwd,
      encoding: 'utf8',
    })
    const { Dir: directory, Version: version } = JSON.parse(answer)
    return { version, definitions: JSON.parse(readFileSync(join(directory, specification), 'utf8')).definitions }
  })
}

/** Adds the fields of each type by the type that they have, from the first type on. */
function addTypes(all, definitions) {
  const types = new Map()
  const open = [first]
  const short = (name) => name.slice(name.lastIndexOf('.') + 1)
  const typeOf = ({ $ref, type, format, items, additionalProperties }) => {
    if (type === 'array') return `${typeOf(items)}[]`
    if (additionalProperties) return `${typeOf(additionalProperties)}{}`
    if ($ref === undefined) {
      const known = plain.get([type, format].filter(Boolean).join(' '))
      if (known === undefined) throw new Error(`no type of ours is ${type} of the format ${format}`)
      return known
    }
    const name = $ref.slice('#/definitions/'.length)
    if (named.has(name)) return named.get(name)
    open.push(name)
    return short(name)
  }
  for (const name of open) {
    if (types.has(short(name))) {
      if (types.get(short(name)).name !== name) throw new Error(`two definitions are ${short(name)}`)
      continue
    }
    const fields = new Map()
    for (const [field, schema] of Object.entries(definitions[name].properties)) {
      const type = typeOf(schema)
      fields.set(type, [...(fields.get(type) ?? []), field])
    }
    types.set(short(name), { name, fields })
  }
  for (const [type, { fields }] of types) {
    const known = all.get(type) ?? new Map()
    for (const [of, names] of fields) known.set(of, [...new Set([...(known.get(of) ?? []), ...names])].sort())
    all.set(type, known)
  }
  return all
}

function textOf(version, types) {
  const rows = [...types].map(([type, fields]) => {
    const cells = [...fields].map(([of, names]) => `${JSON.stringify(of)}: ${JSON.stringify(names.join(' '))}`)
    return `  ${type}: { ${cells.join(', ')} },`
  })
  return `/*
 * The fields of a Pod by their types, as kubelet's decoder has them: made by scripts/pod-types.mjs from kubernetes ${version}
 * (${specification}, from ${first} on). \`T[]\` is a list, \`T{}\` a map from names. A field that stands in no
 * type is unknown to the decoder, which drops it.
 */

/** For each type: its fields, in words with spaces between them, by the type that they have. */
export type FieldTypes = Readonly<Record<string, Readonly<Record<string, string>>>>

export const podTypes: FieldTypes = {
${rows.join('\n')}
}
`
}

const versions = sources()
const version = versions.map((source) => source.version).join(' and ')
const types = versions.reduce((all, { definitions }) => addTypes(all, definitions), new Map())
const options = await prettier.resolveConfig(join(root, file))
const text = await prettier.format(textOf(version, types), { ...options, filepath: file })
if (!process.argv.includes('--check')) writeFileSync(join(root, file), text)
else if (readFileSync(join(root, file), 'utf8') !== text) {
  console.error(`${file} is not what scripts/pod-types.mjs makes of kubernetes ${version}: run it`)
  process.exitCode = 1
}
