/** kubelet's own decoder and validation judge manifests of real control planes, and changes of them that people make. */
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { replaying, seed } from '../seed.js'
import { corpus } from '../static-pods/pod/manifest-corpus.js'
import { mutated, type MutatedManifest } from '../static-pods/pod/mutated-manifests.js'
import { findProgram, kubernetesVersion, type Program } from './assets.js'
import { workingDirectory } from './guard.js'
import { compareWritten, counted, judge, kubelets } from './kubelet-judge.js'
import { errorOf } from '../static-pods/pod/error-of.js'

/** Of each seed. */
const count = Number(process.env.HOLDFAST_MANIFESTS ?? '300')

/** What kubeadm itself writes. */
async function kubeadmManifests(): Promise<string[]> {
  const directory = join(workingDirectory, 'kubeadm')
  mkdirSync(directory)
  const kubeadm = await findProgram('kubeadm')
  const env = { ...process.env, KUBEADM_INIT_DRYRUN_DIR: directory }
  for (const phase of [
    ['control-plane', 'all', `--kubernetes-version=${kubernetesVersion}`],
    ['etcd', 'local'],
  ])
    await promisify(execFile)(kubeadm, ['init', 'phase', ...phase, '--dry-run'], { env })
  return readdirSync(directory).map((name) => readFileSync(join(directory, name), 'utf8'))
}

const texts = [...Object.values(corpus), ...(await kubeadmManifests())]

await t.test('each kubelet and holdfast take each manifest of the corpus', async (t) => {
  for (const [minor, program] of kubelets) {
    const { refusals } = await judge(t, texts, program)
    for (const [index, text] of texts.entries()) t.equal(refusals[index], undefined, `1.${minor}: ${text.slice(0, 80)}`)
  }
  for (const text of texts) t.equal(await errorOf(text), undefined, `holdfast: ${text.slice(0, 80)}`)
  t.equal(texts.length, 9)
})

/** Has one kubelet and holdfast judge the manifests, and answers with those that both take, and kubelet's pods. */
async function compare(t: Test, drawn: readonly MutatedManifest[], minor: number, program: Program) {
  const { refusals, pods } = await judge(
    t,
    drawn.map(({ text }) => text),
    program,
  )
  const errors = await Promise.all(drawn.map(({ text }) => errorOf(text, { kubelet: minor })))
  const published = drawn.flatMap(({ text }, index) =>
    refusals[index] !== undefined && errors[index] === undefined ? [`${refusals[index]}\n${text}`] : [],
  )
  t.strictSame(published.slice(0, 3), [], `of ${count}, holdfast publishes ${published.length} that 1.${minor} refuses`)
  const isInvalid = (refusal: string | undefined) => refusal?.includes('invalid pod: ') === true
  t.comment(
    `1.${minor} refuses ${refusals.filter(Boolean).length}, ${refusals.filter(isInvalid).length} of them by validation`,
  )
  const stricter = errors.filter((error, index) => error !== undefined && refusals[index] === undefined)
  t.comment(
    `holdfast refuses and kubelet takes ${stricter.length}`,
    ...counted(stricter.map((error) => (error ?? '').replace(/^web\.yaml: (?:line \d+, column \d+: )?/, ''))),
  )
  const taken = drawn.filter((_, index) => refusals[index] === undefined && errors[index] === undefined)
  return { taken, pods }
}

for (const from of replaying ? [seed] : [1, seed]) {
  await t.test(`holdfast publishes no changed manifest that a kubelet refuses, HOLDFAST_SEED=${from}`, async (t) => {
    const drawn = mutated(texts, count, from)
    for (const [minor, program] of kubelets) {
      const { taken, pods } = await compare(t, drawn, minor, program)
      const compared = await compareWritten(t, taken, pods, program)
      t.ok(compared > count / 10, `${compared} pods were compared`)
    }
  })
}
