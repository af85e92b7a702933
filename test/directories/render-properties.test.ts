import { objectName } from '../../src/message-text.js'
import t from 'tap'
import type { Content, DirectoryConfiguration } from '../../src/config/types.js'
import { render } from '../../src/directories/render.js'
import type { KeptObject } from '../../src/directories/types.js'
import type { LoadedState, ObjectReference } from '../../src/objects/types.js'
import { absent, combine, configMap, directoryOf, keptOf, lookup, present, secret, unknown, whole } from './objects.js'
import { Random } from '../random.js'
import { replay, seed } from '../seed.js'

const rounds = 5000
const canary = 'canary-5b1f'

const random = new Random(seed)
const several = <One>(most: number, make: () => One) => Array.from({ length: 1 + random.below(most) }, make)

const references = [secret('a'), secret('b'), configMap('a')]
const keys = ['k', 'l', 'x', 'tls.crt', '__proto__', 'toString']
const evilKeys = [...keys, ...keys, ...keys, '..', '.', '', 'a/b', '../k', '/k', 'k\0', '..data']
/** Mostly paths that the configuration allows, and now and then a forbidden one. */
const paths = [...keys, 'x/k', 'x/y/k', 'k/x', 'x/y', 'l/k']
const evilPaths = [...paths, ...paths, ...paths, '../k', '/k', 'x//k', 'x/', '.', '..', 'x/../../k', 'k\0']
const intos = ['', '', 'x', 'x/y', 'k', '..', 'x/..']

function anyContent(): Content {
  const optional = random.chance(0.6)
  const mode = random.chance(0.3) ? 0o644 : undefined
  if (random.chance(0.3)) {
    const parts = several(3, () => [random.pick(references), random.pick(keys)] as const)
    return combine(random.pick(evilPaths), parts, { optional, mode })
  }
  const items = random.chance(0.5)
    ? several(3, () => ({ key: random.pick(keys), path: random.pick(evilPaths), mode }))
    : undefined
  return whole(random.pick(references), {
    into: random.chance(0.9) ? random.pick(intos.slice(0, 5)) : random.pick(intos),
    optional,
    items,
  })
}

const text = () => `${canary}-${random.below(1000)}`

function anyObservation(reference: ObjectReference): readonly [ObjectReference, LoadedState] {
  const chosen = random.next()
  if (chosen < 0.2) return absent(reference)
  if (chosen < 0.3) return unknown(reference)
  const data = new Map(several(4, () => [random.pick(evilKeys), Buffer.from(text())] as const))
  return present(reference, {}, { data, terminating: random.chance(0.2) })
}

function anyKept(reference: ObjectReference): readonly [ObjectReference, KeptObject] {
  const files = () =>
    Object.fromEntries(several(4, () => [random.pick(random.chance(0.9) ? paths : evilPaths), text()]))
  return keptOf(reference, files(), random.chance(0.4) ? files() : undefined)
}

interface Case {
  readonly directory: DirectoryConfiguration
  readonly latest: readonly (readonly [ObjectReference, LoadedState])[]
  readonly kept: readonly (readonly [ObjectReference, KeptObject])[]
}

function anyCase(): Case {
  const directory = directoryOf(several(4, anyContent), {
    onMissing: random.pick(['keep', 'remove'] as const),
    validate: random.chance(0.2) ? ['certificates'] : [],
  })
  return {
    directory,
    latest: references.filter(() => random.chance(0.95)).map(anyObservation),
    kept: references.filter(() => random.chance(0.6)).map(anyKept),
  }
}

/** The fault of a rendering, for objects and contents of every kind. */
async function fault({ directory, latest, kept }: Case): Promise<string | undefined> {
  const rendering = await render(directory, lookup(latest), lookup(kept))
  if (!rendering.ready) {
    if (rendering.findings.length === 0) return 'not ready without a finding'
    const reported = JSON.stringify(rendering.findings)
    return reported.includes(canary) ? `content is shown: ${reported}` : undefined
  }
  const files = Object.keys(rendering.files)
  const all = new Set(files)
  for (const path of files) {
    const parts = path.split('/')
    if (parts.some((part) => part === '' || part === '.' || part === '..' || part.includes('\0')))
      return `${path} climbs`
    for (let length = 1; length < parts.length; length++) {
      if (all.has(parts.slice(0, length).join('/'))) return `${path} is below a file`
    }
  }
  const given = rendering.objects.flatMap((object) => object.paths)
  if (new Set(given).size !== given.length) return 'two objects claim one path'
  const combined = new Set(rendering.objects.flatMap((object) => object.combined ?? []))
  for (const path of files) {
    if (given.includes(path) === combined.has(path))
      return `${path} is recorded in ${combined.has(path) ? 'two ways' : 'no way'}`
  }
  for (const path of [...given, ...combined]) if (!all.has(path)) return `${path} is recorded and not there`
  return requiredFault({ directory, latest, kept }, rendering.objects.map(describeRecorded))
}

function describeRecorded({ kind, namespace, name }: { kind: string; namespace: string; name: string }): string {
  return `${kind} ${namespace}/${name}`
}

/** A directory is ready only if each object that it requires is there, or stays as it is published while it is deleted. */
function requiredFault({ directory, latest, kept }: Case, recorded: readonly string[]): string | undefined {
  for (const content of directory.contents) {
    if (content.optional || content.type !== 'object') continue
    const name = objectName(content.reference)
    const observation = lookup(latest)(content.reference)
    if (observation?.state !== 'present') return `${name} is required, and not there`
    if (observation.object.terminating && lookup(kept)(content.reference) === undefined)
      return `${name} is published again`
    if (!recorded.includes(name)) return `${name} is not recorded`
  }
  return undefined
}

await t.test(`no rendering climbs, conflicts, or tells content; ${replay}`, async (t) => {
  let ready = 0
  for (let round = 0; round < rounds; round++) {
    const one = anyCase()
    const found = await fault(one)
    if (found !== undefined) {
      t.fail(`round ${round}: ${found}`, { found: JSON.stringify(one) })
      break
    }
    if ((await render(one.directory, lookup(one.latest), lookup(one.kept))).ready) ready++
  }
  t.ok(ready > rounds / 50, `${ready} of ${rounds} were ready: the property is about something`)
})
