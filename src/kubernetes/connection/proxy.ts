import { BlockList, isIP } from 'node:net'

/**
 * Chooses the proxy of a request. The environment's variables mean what they mean to every Go program of a
 * cluster (golang.org/x/net/http/httpproxy): HTTPS_PROXY and HTTP_PROXY by the scheme of the server, upper case
 * before lower case; NO_PROXY lists hosts, domains (`example.com` and `.example.com`), addresses and CIDRs, each but
 * the last with an optional port, or `*`. localhost and loopback addresses are never proxied.
 */
export type Environment = Readonly<Record<string, string | undefined>>

/** Throws an Error that names the variable, and not its value, which may hold a password. */
export function proxyFromEnvironment(server: URL, environment: Environment): URL | undefined {
  const names = server.protocol === 'https:' ? ['HTTPS_PROXY', 'https_proxy'] : ['HTTP_PROXY', 'http_proxy']
  const name = names.find((candidate) => (environment[candidate] ?? '') !== '')
  const text = name === undefined ? '' : (environment[name] ?? '')
  if (name === undefined || isExempt(server, environment['NO_PROXY'] || environment['no_proxy'] || '')) {
    return undefined
  }
  const url = parseProxy(text)
  const problem = url ? unsupportedProxy(url) : 'not a URL'
  if (!url || problem !== undefined) throw new Error(`${name}: ${problem ?? ''}`)
  return url
}

/** Says why this client cannot use a proxy's URL; undefined: it can. */
export function unsupportedProxy(url: URL): string | undefined {
  if (url.protocol === 'http:' || url.protocol === 'https:') return undefined
  if (url.protocol.startsWith('socks')) {
    return 'SOCKS proxies are not supported; use one that starts with http:// or https://'
  }
  return 'must start with http:// or https://'
}

/** The host and port of a URL as `host`, brackets of an IPv6 address removed. */
export function addressOf(url: URL): { host: string; port: number } {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return { host, port: url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port) }
}

function parseProxy(text: string): URL | undefined {
  const url = /^[a-z0-9+.-]+:\/\//i.test(text) ? text : `http://${text}`
  return URL.canParse(url) ? new URL(url) : undefined
}

function isExempt(server: URL, noProxy: string): boolean {
  const { host, port } = addressOf(server)
  if (host === 'localhost' || isLoopback(host)) return true
  return noProxy
    .split(',')
    .map((rule) => rule.trim().toLowerCase())
    .some((rule) => rule !== '' && matchesNoProxy(rule, host, port))
}

function matchesNoProxy(rule: string, host: string, port: number): boolean {
  if (rule === '*') return true
  const cidr = /^([0-9a-f.:]+)\/(\d+)$/.exec(rule)
  if (cidr) return inSubnet(host, cidr[1] ?? '', Number(cidr[2]))
  const { name, only } = splitPort(rule)
  if (name === '' || (only !== undefined && only !== port)) return false
  if (isIP(name) !== 0) return sameAddress(name, host)
  const domain = name.startsWith('*.') ? name.slice(1) : name
  if (isIP(host) !== 0) return false
  return domain.startsWith('.') ? host.endsWith(domain) : host === domain || host.endsWith(`.${domain}`)
}

/** `name`, `name:port`, `[v6]:port`, or a bare IPv6 address. */
function splitPort(rule: string): { name: string; only?: number } {
  const match = /^(?:\[([^\]]*)\]|([^:]*)):(\d+)$/.exec(rule)
  if (!match) return { name: rule.replace(/^\[(.*)\]$/, '$1') }
  return { name: match[1] ?? match[2] ?? '', only: Number(match[3]) }
}

function inSubnet(host: string, network: string, prefix: number): boolean {
  const family = isIP(network)
  if (family === 0 || isIP(host) !== family || prefix > (family === 4 ? 32 : 128)) return false
  const list = new BlockList()
  list.addSubnet(network, prefix, family === 4 ? 'ipv4' : 'ipv6')
  return list.check(host, family === 4 ? 'ipv4' : 'ipv6')
}

/** Compares addresses by value: `::1` and `0:0:0:0:0:0:0:1` are one. */
function sameAddress(a: string, b: string): boolean {
  return inSubnet(b, a, isIP(a) === 4 ? 32 : 128)
}

function isLoopback(host: string): boolean {
  return inSubnet(host, '127.0.0.0', 8) || inSubnet(host, '::1', 128)
}
