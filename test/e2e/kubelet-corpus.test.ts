/** kubelet's own decoder and validation judge manifests of real control planes, and changes of them that people make. */
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { replaying, seed } from '../seed.js'
import { corpus } from '../static-pods/pod/manifest-corpus.js'
import { mutated } from '../static-pods/pod/mutated-manifests.js'
import { findProgram } from './assets.js'
import { workingDirectory } from './guard.js'
import { compareWritten, counted, judge, ruleOf } from './kubelet-judge.js'
import { errorOf } from '../static-pods/pod/error-of.js'

t.setTimeout(240_000)

/** Of each seed. */
const count = Number(process.env.HOLDFAST_MANIFESTS ?? '300')

/** What kubeadm itself writes. */
async function kubeadmManifests(): Promise<string[]> {
  const directory = join(workingDirectory, 'kubeadm')
  mkdirSync(directory)
  const kubeadm = await findProgram('kubeadm')
  const env = { ...process.env, KUBEADM_INIT_DRYRUN_DIR: directory }
  for (const phase of [
    ['control-plane', 'all', '--kubernetes-version=v1.35.4'],
    ['etcd', 'local'],
  ])
    await promisify(execFile)(kubeadm, ['init', 'phase', ...phase, '--dry-run'], { env })
  return readdirSync(directory).map((name) => readFileSync(join(directory, name), 'utf8'))
}

const texts = [...Object.values(corpus), ...(await kubeadmManifests())]

await t.test('kubelet and holdfast take each manifest of the corpus', async (t) => {
  const { refusals } = await judge(t, texts)
  for (const [index, text] of texts.entries()) {
    t.equal(refusals[index], undefined, `kubelet: ${text.slice(0, 80)}`)
    t.equal(await errorOf(text), undefined, `holdfast: ${text.slice(0, 80)}`)
  }
  t.equal(texts.length, 9)
})

/** Errors of the rules that holdfast has, too (src/static-pods/pod/pod-faults.ts and container-faults.ts name kubelet's functions). */
const ruled = [
  /^metadata\.(?:name|namespace|labels|annotations): /,
  /^spec\.(?:restartPolicy|dnsPolicy|preemptionPolicy|hostname|subdomain|priorityClassName|runtimeClassName|nodeSelector): /,
  /^spec\.(?:activeDeadlineSeconds|hostAliases|tolerations)/,
  /^spec\.dnsConfig\.(?:nameservers|options)/,
  /^spec\.securityContext\.(?:sysctls|seccompProfile|shareProcessNamespace)/,
  /^spec\.volumes\[\d+\]\.(?:name|hostPath|emptyDir|downwardAPI\.(?:path|mode|defaultMode))/,
  /^spec\.volumes\[\d+\].*more than 1 volume type/,
  /^spec\.(?:initContainers|containers)(?:\[\d+\])?\.(?:name|image|imagePullPolicy|restartPolicy|terminationMessagePolicy|ports|env|envFrom)(?:$|\W)/,
  /^spec\.(?:initContainers|containers)\[\d+\]\.volumeMounts(?!.*recursiveReadOnly)/,
  /^spec\.(?:initContainers|containers)\[\d+\]\.resources\.(?:limits|requests)(?!.*(?:hugepages|HugePages|overcommitable|integer))/,
  /^spec\.(?:initContainers|containers)\[\d+\]\.(?:livenessProbe|readinessProbe|startupProbe)(?:\W)/,
  /^spec\.(?:initContainers|containers)\[\d+\]\.lifecycle\.(?:postStart|preStop)(?!.*sleep)/,
  /^spec\.(?:initContainers|containers)\[\d+\]\.securityContext\.seccompProfile/,
  /^spec\.ephemeralContainers: /,
]

/** Whether a rule of the list is among those that the pod breaks. */
function isRuled(refusal: string): boolean {
  const [, all = ''] = /invalid pod: \[?(.*)/s.exec(refusal) ?? []
  const errors = all.split(/[, ]+(?=(?:spec|metadata)[.[])/).filter((error) => !/divisor|fileKeyRef/.test(error))
  return errors.some((error) => ruled.some((rule) => rule.test(error)))
}

for (const from of replaying ? [seed] : [1, seed]) {
  await t.test(
    `holdfast publishes no changed manifest that kubelet cannot decode, HOLDFAST_SEED=${from}`,
    async (t) => {
      const drawn = mutated(texts, count, from)
      const { refusals, pods } = await judge(
        t,
        drawn.map(({ text }) => text),
      )
      const errors = await Promise.all(drawn.map(({ text }) => errorOf(text)))
      const isInvalid = (refusal: string | undefined) => refusal?.includes('invalid pod: ') === true
      const torn = drawn.flatMap(({ text }, index) =>
        refusals[index] !== undefined && !isInvalid(refusals[index]) && errors[index] === undefined
          ? [`${refusals[index]}\n${text}`]
          : [],
      )
      t.strictSame(torn.slice(0, 3), [], `of ${count}, holdfast publishes ${torn.length} that kubelet cannot decode`)
      const missed = refusals.filter((refusal, index) => isInvalid(refusal) && errors[index] === undefined)
      const broken = drawn.flatMap(({ text }, index) =>
        isInvalid(refusals[index]) && errors[index] === undefined && isRuled(refusals[index] ?? '')
          ? [`${refusals[index]}\n${text}`]
          : [],
      )
      t.strictSame(broken.slice(0, 3), [], `and ${broken.length} that break a rule of the list`)
      t.comment(
        `kubelet refuses ${refusals.filter(Boolean).length}, ${refusals.filter(isInvalid).length} of them by validation`,
      )
      t.comment(
        `validation refuses and holdfast publishes ${missed.length}`,
        ...counted(missed.map((refusal) => ruleOf(refusal ?? ''))),
      )
      const stricter = errors.filter((error, index) => error !== undefined && refusals[index] === undefined)
      t.comment(
        `holdfast refuses and kubelet takes ${stricter.length}`,
        ...counted(stricter.map((error) => (error ?? '').replace(/^web\.yaml: (?:line \d+, column \d+: )?/, ''))),
      )

      const taken = drawn.filter((_, index) => refusals[index] === undefined && errors[index] === undefined)
      const compared = await compareWritten(t, taken, pods)
      t.ok(compared > count / 10, `${compared} pods were compared`)
    },
  )
}
