/** kubelet's own decoder judges the manifests that holdfast accepts as Pods, and those that it writes. */
import { execFile } from 'node:child_process'
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { project } from '../project.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { asMap } from '../../src/static-pods/json.js'
import { listManifests, readListed } from '../../src/static-pods/node-files.js'
import { parseManifest } from '../../src/static-pods/pod/manifest.js'
import { replaying, seed } from '../seed.js'
import { run } from '../static-pods/command.js'
import { fillWithOthers } from '../static-pods/passed-over.js'
import { brokenPods, soundPods } from '../static-pods/pod/broken-pods.js'
import {
  jsonValues,
  manifestWith,
  podFields,
  quotedTexts,
  values,
  type DrawnManifest,
} from '../static-pods/pod/drawn-manifests.js'
import { kubeletCases } from '../static-pods/pod/kubelet-cases.js'
import { workingDirectory } from './guard.js'
import { compareWritten, counted, judgeByAll, ruleOf, watchManifests } from './kubelet-judge.js'
import { errorOf } from '../static-pods/pod/error-of.js'

const typeFault = /line (\d+), column (\d+): .* must be .*, but is .*; kubelet would refuse the pod$/

/** kubelet's decoder refused it, and not what comes after it. */
function isUndecodable(refusal: string | undefined): boolean {
  return refusal?.includes("couldn't parse as pod(") === true
}

/** A field twice. */
const twice = '{"a":1,"a":"b"}'

/** holdfast refuses, and kubelet takes: a field twice, and quantities that stand for 0 without a digit, or for numbers without end. */
function isStricter({ type, value }: DrawnManifest): boolean {
  if (value === twice) return true
  return type === 'quantity' && /^(?:[.+]|[mK]i?|1e1000)$/.test(value)
}

/** How holdfast's answer differs from kubelet's; undefined where the two agree. */
function disagreement(drawn: DrawnManifest, error: string | undefined, refusal: string | undefined) {
  const { text, value } = drawn
  if (isUndecodable(refusal) && error === undefined) return `published, and kubelet ends the pod: ${refusal}`
  if (isStricter(drawn)) return undefined
  const [isType, line, column] = typeFault.exec(error ?? '') ?? []
  if (refusal === undefined && error !== undefined) return `kubelet takes it: ${error}`
  if (isType !== undefined && !isUndecodable(refusal)) return `kubelet's decoder takes it: ${error}`
  const place = text.split('\n')[Number(line) - 1]?.slice(Number(column) - 1) ?? ''
  // The place of a value with a tag is behind the tag, and in a list that of its first item.
  const isPlaced = /^(?:[[{]|!!)/.test(value) || place.startsWith(value.split('\n', 1)[0] ?? '')
  if (isType !== undefined && !isPlaced) return `another place: ${error}`
  return undefined
}

function drawnFrom(from: number, among: readonly string[], form: 'YAML' | 'JSON'): DrawnManifest[] {
  const [drawn = []] = fc.sample(fc.tuple(...podFields.map(() => fc.constantFrom(...among))), {
    seed: from,
    numRuns: 1,
  })
  return podFields.flatMap((field, index) =>
    manifestWith(field, drawn[index] ?? '', form, `${form}-${index}`.toLowerCase()),
  )
}

await t.test('kubelet judges each manifest as the table says', async (t) => {
  const { refusals } = await judgeByAll(
    t,
    kubeletCases.map(({ text }) => text),
  )
  for (const [index, { what, runs }] of kubeletCases.entries()) t.equal(refusals[index] === undefined, runs, what)
})

await t.test('kubelet and holdfast make the same pod of JSON in which maps stand twice', async (t) => {
  const metadata =
    '{"uid":"U","name":"U","annotations":{"a":"b"},"labels":null},"metadata":{"labels":{"c":"d"},"annotations":{"e":"f"}}'
  const spec = '{"containers":[{"name":"a","image":"a","stdin":true}],"hostNetwork":true}'
  const taken = [
    `"metadata":${metadata},"spec":${spec}`,
    `"metadata":${metadata},"spec":${spec},"spec":{"containers":[{"name":"b","image":"b"}],"volumes":[]}`,
    `"metadata":${metadata},"spec":{"hostPID":true,"securityContext":{"runAsUser":1}},"spec":{"securityContext":{"runAsGroup":2},"containers":[{"name":"b","image":"b"}]}`,
  ].map((fields, index) => ({
    text: `{"apiVersion":"v1","kind":"Pod",${fields}}`.replaceAll('"U"', `"twice-${index}"`),
    uid: `twice-${index}`,
  }))
  const { pods } = await judgeByAll(
    t,
    taken.map(({ text }) => text),
  )
  t.equal(await compareWritten(t, taken, pods), taken.length)
})

await t.test('kubelet refuses each broken pod of the list, and takes each sound one', async (t) => {
  const pods = [...brokenPods, ...soundPods]
  // kubelet's source keeps one pod of a name.
  const texts = pods.map(({ pod }, index) => JSON.stringify(pod).replace('"name":"web"', `"name":"web-${index}"`))
  const { refusals } = await judgeByAll(t, texts)
  for (const [index, { what }] of pods.entries())
    t.equal(refusals[index] === undefined, index >= brokenPods.length, `${what}: ${refusals[index] ?? 'taken'}`)
})

await t.test("the table of the fields' types is what Kubernetes' own OpenAPI says", async (t) => {
  const generator = join(project, 'scripts/pod-types.mjs')
  await t.resolves(promisify(execFile)(process.execPath, [generator, '--check']))
})

interface Tally {
  readonly counts: Record<'manifests' | 'undecodable' | 'taken' | 'compared', number>
  /** Sentences, each as often as it came. */
  readonly stricter: string[]
  readonly missed: string[]
}

const tally = (): Tally => ({
  counts: { manifests: 0, undecodable: 0, taken: 0, compared: 0 },
  stricter: [],
  missed: [],
})

/** Has kubelet and holdfast judge the same manifests, and compares what they say and what they make of them. */
async function compare(t: Test, drawn: readonly DrawnManifest[], found: Tally): Promise<void> {
  const { refusals, pods } = await judgeByAll(
    t,
    drawn.map(({ text }) => text),
  )
  const errors = await Promise.all(drawn.map(({ text }) => errorOf(text)))
  const faults: string[] = []
  for (const [index, one] of drawn.entries()) {
    const [refusal, error] = [refusals[index], errors[index]]
    const fault = disagreement(one, error, refusal)
    if (fault !== undefined) faults.push(`${one.text}${fault}`)
    if (isUndecodable(refusal)) found.counts.undecodable += 1
    else if (refusal === undefined) found.counts.taken += 1
    if (refusal === undefined && error !== undefined)
      found.stricter.push(one.value === twice ? twice : `${one.type}: ${one.value}`)
    if (refusal !== undefined && error === undefined) found.missed.push(ruleOf(refusal))
  }
  t.strictSame(faults.slice(0, 20), [], `${drawn.length} manifests, of which ${faults.length} are judged otherwise`)
  const taken = drawn.filter((_, index) => refusals[index] === undefined && errors[index] === undefined)
  const compared = taken.length === 0 ? 0 : await compareWritten(t, taken, pods)
  t.ok(compared >= taken.length / 2, `${compared} pods were compared`)
  found.counts.manifests += drawn.length
  found.counts.compared += compared
}

/** Rows; the rest is a tail of single ones. */
const longestTable = 60

function report(t: Test, { counts, stricter, missed }: Tally): void {
  const { manifests, undecodable, taken, compared } = counts
  t.comment(
    `${manifests} manifests: kubelet's decoder refuses ${undecodable}, kubelet runs ${taken}; ${compared} pods compared`,
  )
  t.comment(`kubelet takes and holdfast refuses ${stricter.length}`, ...counted(stricter).slice(0, longestTable))
  t.comment(
    `a kubelet's validation refuses and holdfast publishes ${missed.length}`,
    ...counted(missed).slice(0, longestTable),
  )
}

for (const from of replaying ? [seed] : [1, seed]) {
  await t.test(`kubelet and holdfast judge each field's possible values alike, HOLDFAST_SEED=${from}`, async (t) => {
    const found = tally()
    await compare(t, [...drawnFrom(from, values, 'YAML'), ...drawnFrom(from, jsonValues, 'JSON')], found)
    report(t, found)
    t.ok(Math.min(found.counts.undecodable, found.counts.taken) > 50, 'there are many of each')
  })
}

await t.test('kubelet and holdfast read quoted text alike, in a field of each type', async (t) => {
  const found = tally()
  const fields = [...new Map(podFields.map((field) => [field.type, field])).values()].filter(({ type }) =>
    /^[a-z]/.test(type),
  )
  const drawn = fields.flatMap((field, of) =>
    quotedTexts.map((value, index) => manifestWith(field, value, 'YAML', `quoted-${of}-${index}`)),
  )
  await compare(t, drawn, found)
  report(t, found)
})

/** Each field with each value: `npm run proof` does so, and CI draws one value for each field. */
if (process.env.HOLDFAST_FIELDS === 'all') {
  await t.test('kubelet and holdfast judge every value in every field alike', { timeout: 3_600_000 }, async (t) => {
    const found = tally()
    for (const [form, among] of [
      ['YAML', values],
      ['JSON', jsonValues],
    ] as const)
      for (const value of among) {
        const drawn = podFields.map((field, index) =>
          manifestWith(field, value, form, `${form}-${index}`.toLowerCase()),
        )
        await t.test(`${form}: ${JSON.stringify(value)}`, (t) => compare(t, drawn, found))
      }
    report(t, found)
  })
}

await t.test('kubelet and holdfast read the same files of a manifest directory', async (t) => {
  const directory = join(workingDirectory, 'files')
  mkdirSync(directory)
  const podOf = (name: string) =>
    `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec: {containers: [{name: a, image: a}]}\n#`
  fillWithOthers(directory, podOf('other'))
  const read = ['b~.yaml', 'c.yaml.bak', 'd', '~', '#e#', 'f.yaml.tmp1', 'g h', '[i]']
  for (const [index, name] of read.entries()) writeFileSync(join(directory, name), podOf(`p${index}`))
  // The largest, and one byte more.
  for (const [name, size] of Object.entries({ largest: 10_485_759, larger: 10_485_760 }))
    writeFileSync(join(directory, name), podOf(name).padEnd(size, ' '))
  symlinkSync('largest', join(directory, 'to-largest'))
  const { pods } = await (await watchManifests(t, directory, '1h'))()
  const fs = new NodeFileSystem()
  const ours: string[] = []
  for (const path of await listManifests(fs, directory)) {
    const bytes = await readListed(fs, path)
    if (bytes !== undefined) ours.push((await parseManifest(bytes, path)).name)
  }
  const theirs = pods.map((pod) => String(asMap(pod.metadata)?.name).replace(/-node$/, ''))
  t.strictSame([...new Set(ours)].sort(), theirs.sort())
  t.strictSame(theirs, ['largest', ...read.map((_, index) => `p${index}`)])
})

await t.test('a manifest that kubelet refuses ends the pod, and holdfast publishes none', async (t) => {
  const directory = join(workingDirectory, 'live')
  mkdirSync(directory)
  const source = join(workingDirectory, 'web.yaml')
  const live = join(directory, 'web.yaml')
  const [number, text] = kubeletCases
  writeFileSync(source, text?.text ?? '')
  const installed = await run(['install', source, `--pod-manifest-dir=${directory}`])
  t.equal(installed.code, 0, installed.stderr)
  const next = await watchManifests(t, directory, '100ms')
  t.equal((await next()).pods.length, 1)

  writeFileSync(source, number?.text ?? '')
  const refused = await run(['install', source, `--pod-manifest-dir=${directory}`])
  t.match(refused, { code: 2, stderr: /line 6, column 59: .* must be text, but is a number: quote it/ })
  const written = await run(['write', live, '--from', source, '--validate', 'pod'])
  t.match(written, { code: 1, stderr: /line 6, column 59: .* must be text, but is a number: quote it/ })
  await next()
  t.equal((await next()).pods.length, 1, 'the pod runs on')

  renameSync(source, live)
  let reading = await next()
  while (reading.pods.length > 0) reading = await next()
  t.match(reading.refused.get('web.yaml'), /cannot unmarshal number .* of type string/)
})
