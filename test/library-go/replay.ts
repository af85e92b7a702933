/** Runs the cases with holdfast's commands. */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { workingDirectory } from '../e2e/guard.js'
import { project } from '../project.js'
import { run } from '../static-pods/command.js'
import type { Case } from './case.js'
import type { CaseName } from './cases.js'
import type { Outcome, Scene } from './scene.js'

const commands = {
  installer: () => ['install', '--kubeconfig=KUBECONFIG'],
  prune: () => ['prune'],
  'startup-monitor': () => ['monitor', '--ready-for=0s'],
  // Its configuration names its files, not its flags.
  'cert-syncer': (scene) => ['sync', `--config=${configuration(scene)}`],
} satisfies Record<Case['command'], (scene: Scene) => string[]>

/** What library-go's commands did, as record.ts wrote it. */
export function recorded(): Record<CaseName, Outcome> {
  const file = join(project, 'test/library-go/recorded.json')
  return (JSON.parse(readFileSync(file, 'utf8')) as { outcomes: Record<CaseName, Outcome> }).outcomes
}

export async function replay(scene: Scene): Promise<Outcome & { readonly said: string }> {
  const { command, flags, more = [] } = scene.given
  const args = [...commands[command](scene), ...flags, ...more].map((flag) => scene.own(flag))
  const { code, stdout, stderr } = await run(args, { NODE_NAME: scene.node })
  return { ...(await scene.outcome(code ?? -1)), said: stdout + stderr }
}

/** An agent's configuration that keeps what the case's cert-syncer keeps, in the same places and by the same modes. */
function configuration(scene: Scene): string {
  const {
    SECRETS = '',
    OPTIONAL_SECRETS = '',
    CONFIGMAPS = '',
    OPTIONAL_CONFIGMAPS = '',
  } = scene.given.compiledIn ?? {}
  const directory = (kind: 'secret' | 'configMap', optional: boolean) => (name: string) => ({
    path: join(scene.root, 'certs', `${kind.toLowerCase()}s`, name),
    adopt: 'replace',
    onMissing: 'remove',
    fileMode: kind === 'secret' ? '0600' : '0644',
    contents: [{ [kind]: name, optional }],
  })
  const names = (list: string): string[] => list.split(',').filter((name) => name !== '')
  const home = mkdtempSync(join(workingDirectory, 'agent-'))
  mkdirSync(join(scene.root, 'certs'), { recursive: true })
  const file = join(home, 'holdfast.yaml')
  const document = {
    apiVersion: 'holdfast.dev/v1alpha1',
    kind: 'AgentConfiguration',
    stateDirectory: join(home, 'state'),
    source: { namespace: scene.namespace.name, kubernetes: { kubeconfig: scene.cluster.adminKubeconfig } },
    directories: [
      ...names(SECRETS).map(directory('secret', false)),
      ...names(OPTIONAL_SECRETS).map(directory('secret', true)),
      ...names(CONFIGMAPS).map(directory('configMap', false)),
      ...names(OPTIONAL_CONFIGMAPS).map(directory('configMap', true)),
    ],
  }
  writeFileSync(file, JSON.stringify(document))
  return file
}
