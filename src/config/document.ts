/** The fields of the configuration file as a whole. */
import { directory } from './directory.js'
import { duration } from './duration.js'
import type { Fields } from './field.js'
import { nodePath, type PathContext } from './paths.js'
import { server } from './server.js'
import { source } from './source.js'
import { boolean, fixed, later, listOf, oneOf } from './value-types.js'

export const apiVersion = 'holdfast.dev/v1alpha1'
export const kind = 'AgentConfiguration'
export const defaultStateDirectory = '/var/lib/holdfast'

const intervals = { least: '1s', most: '24h' } as const

export const documentFields = {
  apiVersion: {
    type: fixed('apiVersion', apiVersion),
    description: 'the version of this format',
    required: apiVersion,
  },
  kind: { type: fixed('kind', kind), description: 'what this file is', required: kind },
  stateDirectory: {
    type: nodePath,
    description: 'where the agent keeps `status.json` and `agent.lock`',
    default: defaultStateDirectory,
  },
  requireProven: {
    type: boolean,
    description: 'refuse file systems on which durability is not proven',
    default: false,
  },
  requireTrusted: {
    type: boolean,
    description:
      'refuse a configuration, a kubeconfig with the files and the plugin that it names, or a hook program that users other than root and its own may write to',
    default: false,
  },
  driftInterval: {
    type: duration(intervals),
    description: 'how often the agent compares the disk with the published content and repairs drift',
    default: '10m',
  },
  // Longer than a worn-out card takes to flush.
  operationTimeout: {
    type: duration(intervals),
    description: 'when the agent reports an operation on the disk that has not ended (`Stalled`)',
    default: '2m',
  },
  reload: {
    type: oneOf(['signal', 'auto']),
    description: 'auto: the agent also reads this file again whenever it has changed; signal: only on SIGHUP',
    default: 'signal',
  },
  source: { type: source, description: 'where Secrets and ConfigMaps come from', required: '{ kubernetes: {} }' },
  directories: {
    // A name without a namespace takes the source's, so the source comes first.
    type: later(listOf(directory)),
    description: 'what holdfast publishes, and where',
    required: '[{ path: /etc/x, contents: [{ secret: NAME }] }]',
  },
  report: {
    type: boolean,
    description: 'report to the cluster what this node has on its disk, for `holdfast fleet`; needs deploy/fleet',
    default: false,
  },
  server: { type: server, description: 'health and metrics' },
} satisfies Fields<PathContext>
