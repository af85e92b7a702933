import { isIP, isIPv6 } from 'node:net'
import { mappingOf, type Fields, type ValueType } from './field.js'
import { quote } from '../quote.js'
import type { ServerAddress, ServerConfiguration } from './types.js'
import { listOf, numberUpTo } from './value-types.js'
import type { Value } from './value.js'

const example = '127.0.0.1:10808'

const highestPort = 65535
const hostName = '[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?'
const hostNamePattern = new RegExp(`^${hostName}$`)

const address: ValueType<ServerAddress> = {
  read: readAddress,
  schema: () => {
    const octet = `(?!0[0-9])${numberUpTo(255)}`
    const host = `\\[[^\\]\\u0000]*:[^\\]\\u0000]*\\]|(?:${octet}\\.){3}${octet}|(?![0-9.]*:)${hostName}`
    return { type: 'string', pattern: `^(?:${host}):0*${numberUpTo(highestPort)}$` }
  },
}

const host: ValueType<string> = {
  read: (value) => {
    const text = value.text('metrics.example')
    if (text === undefined || isHostName(text)) return text
    return value.wrong(`${quote(text)} is not a host name`, 'write it without a port, as in "metrics.example"')
  },
  schema: () => ({ type: 'string', maxLength: 253, pattern: `^(?![0-9.]*$)${hostName}$` }),
}

const fields = {
  address: { type: address, description: 'HOST:PORT; port 0 lets the kernel choose one', required: quote(example) },
  hosts: {
    type: listOf(host, { mayBeEmpty: true }),
    description:
      "names by which requests may call this server, beside addresses, `localhost` and the node's name: it answers others with 421",
    default: [],
  },
} satisfies Fields<unknown>

/** `server`: where /livez, /readyz, /healthz and /metrics are answered. */
export const server: ValueType<ServerConfiguration> = mappingOf(
  { fields },
  ({ read }) => read.address && { ...read.address, hosts: read.hosts },
)

function readAddress(address: Value): ServerAddress | undefined {
  const text = address.text(example)
  if (text === undefined) return undefined
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
