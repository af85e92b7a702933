/** The fields of the configuration file as a whole. */
import { isIP, isIPv6 } from 'node:net'
import { directory } from './directory.js'
import { type Fields, mappingOf, type ValueType } from './field.js'
import { nodePath, type PathContext } from './paths.js'
import { source } from './source.js'
import { boolean, duration, fixed, later, listOf, oneOf, numberUpTo, textType } from './value-types.js'
import { quote } from '../message-text.js'
import type { ServerAddress, ServerConfiguration } from './types.js'
import type { Value } from './value.js'

const example = '127.0.0.1:10808'

const highestPort = 65535
const hostName = '[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?'
const hostNamePattern = new RegExp(`^${hostName}$`)

const address: ValueType<ServerAddress> = textType(
  {
    example,
    schema: () => {
      const octet = `(?!0[0-9])${numberUpTo(255)}`
      const host = `\\[[^\\]\\u0000]*:[^\\]\\u0000]*\\]|(?:${octet}\\.){3}${octet}|(?![0-9.]*:)${hostName}`
      return { type: 'string', pattern: `^(?:${host}):0*${numberUpTo(highestPort)}$` }
    },
  },
  readAddress,
)

const host: ValueType<string> = textType(
  {
    example: 'metrics.example',
    schema: () => ({ type: 'string', maxLength: 253, pattern: `^(?![0-9.]*$)${hostName}$` }),
  },
  (text, value) => {
    if (isHostName(text)) return text
    return value.wrong(`${quote(text)} is not a host name`, 'write it without a port, as in "metrics.example"')
  },
)

const serverFields = {
  address: { type: address, description: 'HOST:PORT; port 0 lets the kernel choose one', required: quote(example) },
  hosts: {
    type: listOf(host, { mayBeEmpty: true }),
    description:
      "names by which requests may call this server, beside addresses, `localhost` and the node's name: it answers others with 421",
    default: [],
  },
} satisfies Fields<unknown>

/** `server`: where /livez, /readyz, /healthz and /metrics are answered. */
const server: ValueType<ServerConfiguration> = mappingOf(
  { fields: serverFields },
  ({ read }) => read.address && { ...read.address, hosts: read.hosts },
)

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

function readAddress(text: string, address: Value): ServerAddress | undefined {
  const found = /^(?:\[([^\]]*)\]|([^:]*)):([0-9]+)$/.exec(text)
  if (found === null) {
    return address.wrong(`${quote(text)} is not HOST:PORT`, `write ${meant(text)}`)
  }
  const [, bracketed, plain, digits] = found
  const port = Number(digits)
  if (port > highestPort) return address.wrong(`${quote(text)} has a port above 65535`)
  if (bracketed !== undefined) {
    if (!isIPv6(bracketed)) return address.wrong(`${quote(bracketed)} is not an IPv6 address`)
    return { host: bracketed, port }
  }
  if (plain === undefined || plain === '') {
    const everywhere = `write ${quote(`127.0.0.1:${port}`)}, or ${quote(`[::]:${port}`)} for every interface`
    return address.wrong(`${quote(text)} has no host`, everywhere)
  }
  if (isIP(plain) === 0 && !isHostName(plain)) return address.wrong(`${quote(plain)} is not a host`)
  return { host: plain, port }
}

/** An IPv6 address needs brackets; the number after its last colon was the port, if the rest is still an address. */
function meant(text: string): string {
  const [, host = '', port = ''] = /^(.*):(\d{1,5})$/.exec(text) ?? []
  if (isIPv6(host)) return quote(`[${host}]:${port}`)
  return isIPv6(text) ? quote(`[${text}]:10808`) : `as in ${quote(example)}`
}

/** A name that can be looked up; one of digits and dots alone is a mistyped address. */
function isHostName(text: string): boolean {
  return text.length <= 253 && !/^[0-9.]+$/.test(text) && hostNamePattern.test(text)
}
