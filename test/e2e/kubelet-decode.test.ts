/** kubelet's own decoder judges the manifests that holdfast accepts as Pods, and those that it writes. */
import { execFile } from 'node:child_process'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { project } from '../project.js'
import { replaying, seed } from '../seed.js'
import { run } from '../static-pods/command.js'
import { brokenPods, soundPods } from '../static-pods/pod/broken-pods.js'
import { jsonValues, manifestWith, podFields, values, type DrawnManifest } from '../static-pods/pod/drawn-manifests.js'
import { kubeletCases } from '../static-pods/pod/kubelet-cases.js'
import { workingDirectory } from './guard.js'
import { compareWritten, judge, watchManifests } from './kubelet-judge.js'
import { errorOf } from '../static-pods/pod/error-of.js'

t.setTimeout(240_000)

const typeFault = /line (\d+), column (\d+): .* must be .*, but is .*; kubelet would refuse the pod$/

/** kubelet's decoder refused it, and not what comes after it. */
function isUndecodable(refusal: string | undefined): boolean {
  return refusal?.includes("couldn't parse as pod(") === true
}

/** holdfast refuses, and kubelet takes: a field twice, and quantities that stand for 0 without a digit, or for numbers without end. */
function isStricter({ type, value }: DrawnManifest): boolean {
  if (value === '{"a":1,"a":"b"}') return true
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
  const isPlaced = /^(?:[[{]|!!)/.test(value) || place.startsWith(value)
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
  const { refusals } = await judge(
    t,
    kubeletCases.map(({ text }) => text),
  )
  for (const [index, { what, runs }] of kubeletCases.entries()) t.equal(refusals[index] === undefined, runs, what)
})

await t.test('kubelet refuses each broken pod of the list, and takes each sound one', async (t) => {
  const pods = [...brokenPods, ...soundPods]
  // kubelet's source keeps one pod of a name.
  const texts = pods.map(({ pod }, index) => JSON.stringify(pod).replace('"name":"web"', `"name":"web-${index}"`))
  const { refusals } = await judge(t, texts)
  for (const [index, { what }] of pods.entries())
    t.equal(refusals[index] === undefined, index >= brokenPods.length, `${what}: ${refusals[index] ?? 'taken'}`)
})

await t.test("the table of the fields' types is what Kubernetes' own OpenAPI says", async (t) => {
  const generator = join(project, 'scripts/pod-types.mjs')
  await t.resolves(promisify(execFile)(process.execPath, [generator, '--check']))
})

for (const from of replaying ? [seed] : [1, seed]) {
  await t.test(`kubelet and holdfast judge each field's possible values alike, HOLDFAST_SEED=${from}`, async (t) => {
    const drawn = [...drawnFrom(from, values, 'YAML'), ...drawnFrom(from, jsonValues, 'JSON')]
    const { refusals, pods } = await judge(
      t,
      drawn.map(({ text }) => text),
    )
    const errors = await Promise.all(drawn.map(({ text }) => errorOf(text)))
    const faults = drawn.flatMap((one, index) => {
      const fault = disagreement(one, errors[index], refusals[index])
      return fault === undefined ? [] : [`${one.text}${fault}`]
    })
    t.strictSame(faults, [], `${drawn.length} manifests`)
    const counts = [refusals.filter(isUndecodable).length, refusals.filter((refusal) => refusal === undefined).length]
    t.comment(`${drawn.length} manifests: kubelet's decoder refuses ${counts[0]}, kubelet runs ${counts[1]}`)
    t.ok(Math.min(...counts) > 50, 'there are many of each')

    const taken = drawn.filter((_, index) => refusals[index] === undefined && errors[index] === undefined)
    const compared = await compareWritten(t, taken, pods)
    t.ok(compared > taken.length / 2, `${compared} pods were compared`)
  })
}

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
