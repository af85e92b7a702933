/**
 * Runs each case with library-go's own commands, and writes the results: `node record.js PROGRAM`, where PROGRAM is built from
 * commands/main.go by record.sh. test/e2e/operator-status.test.ts compares holdfast with them.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Cluster } from '../e2e/cluster.js'
import { addOperator } from '../e2e/operator-resource.js'
import { project } from '../project.js'
import { Scene, type Outcome } from './scene.js'

/** What each says when it has done its work, and does not end. */
const done: Partial<Record<Scene['given']['command'], RegExp>> = {
  'startup-monitor': /Waiting for SIGTERM/,
  'cert-syncer': /Syncing secrets/,
}
/** Milliseconds for what a cert-syncer does after it said so: nothing tells when it has done all. */
const quiet = 8_000

async function run(scene: Scene, program: string): Promise<Outcome> {
  const { command, flags, umask = 0o022, compiledIn = {} } = scene.given
  const more = {
    installer: ['--kubeconfig=KUBECONFIG'],
    prune: [],
    'startup-monitor': ['--kubeconfig=KUBECONFIG'],
    'cert-syncer': ['--kubeconfig=KUBECONFIG', '--namespace=NAMESPACE', '--destination-dir=ROOT/certs'],
  }[command]
  const usual = process.umask(umask)
  const child = spawn(program, [command, ...[...flags, ...more].map((flag) => scene.own(flag))], {
    cwd: scene.working,
    env: { NODE_NAME: scene.node, POD_NAMESPACE: scene.namespace.name, ...compiledIn },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  process.umask(usual)
  const closed = once(child, 'close') as Promise<[number | null]>
  let said = ''
  const work = new Promise<'runs on'>((resolve) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
      if (done[command]?.test(said)) resolve('runs on')
    })
  })
  const end = await Promise.race([work, closed.then(([code]) => code ?? -1)])
  if (end === 'runs on' && command === 'cert-syncer') await sleep(quiet)
  const outcome = await scene.outcome(end)
  child.kill('SIGKILL')
  await closed
  process.stderr.write(`${scene.name}: ${end}; ${said.trim().split('\n').at(-1)?.slice(0, 200) ?? ''}\n`)
  return outcome
}

const [program = '', commit = ''] = process.argv.slice(2)
const cluster = await Cluster.start()
await addOperator(cluster)
const scenes = await Scene.createAll(cluster)
const outcomes = await Promise.all(scenes.map(async (scene) => [scene.name, await run(scene, program)] as const))
await cluster.stop()
const recorded = { module: 'github.com/openshift/library-go', commit, outcomes: Object.fromEntries(outcomes) }
writeFileSync(join(project, 'test/library-go/recorded.json'), `${JSON.stringify(recorded, undefined, 2)}\n`)
