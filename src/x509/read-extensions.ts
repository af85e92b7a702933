/** What Go's crypto/x509 demands of the extensions of a certificate. Sources: processExtensions in its parser.go (Go 1.26); RFC 5280, 4.2. */
import { isAscii } from 'node:buffer'
import type { Der } from './der.js'
import { around, checkArcs, fieldTag, tags, Unreadable } from './der.js'

/** Each reads the value of an extension. @throws Unreadable */
type ExtensionCheck = (value: Der) => void

const each = (list: Der, check: ExtensionCheck): void => {
  while (!list.isEmpty) check(list)
}

const extensions: Readonly<
  Record<string, { readonly name: string; readonly check: ExtensionCheck; readonly plain?: true }>
> = {
  '551d0e': { name: 'subject key identifier', check: (value) => value.body(tags.octets), plain: true },
  '551d0f': { name: 'key usage', check: (value) => value.bits() },
  '551d11': { name: 'list of alternative names', check: (value) => each(value.enter(), checkAlternativeName) },
  '551d13': { name: 'basic constraints', check: checkBasicConstraints },
  '551d1e': { name: 'name constraints', check: checkNameConstraints },
  '551d1f': {
    name: 'list of revocation lists',
    check: (value) => each(value.enter(), checkDistributionPoint),
  },
  '551d20': { name: 'policies', check: checkPolicies },
  '551d21': { name: 'policy mappings', check: (value) => each(value.enter(), checkMapping) },
  '551d23': { name: 'authority key identifier', check: (value) => value.enter().optional(fieldTag(0)), plain: true },
  '551d24': { name: 'policy constraints', check: checkPolicyConstraints },
  '551d25': { name: 'extended key usage', check: (value) => each(value.enter(), (list) => list.oid()) },
  '551d36': { name: 'policy inhibition', check: (value) => short(value.integer()) },
  '2b06010505070101': {
    name: 'access to its authority',
    check: (value) =>
      each(value.enter(), (list) => {
        const access = list.enter()
        access.oid()
        access.optional(fieldTag(6))
      }),
    plain: true,
  },
}

/** @throws Unreadable, with the name of the extension where it is one that Go reads */
export function checkExtensions(list: Der | undefined): void {
  const known = new Set<string>()
  const all = list?.enter()
  list?.end()
  while (all && !all.isEmpty) {
    const extension = all.enter()
    const id = extension.oid()
    const isCritical = extension.isNext(tags.boolean) && extension.boolean()
    const value = extension.enter(tags.octets)
    extension.end()
    if (known.has(id)) throw new Unreadable('it has an extension twice: Go refuses it')
    known.add(id)
    checkExtension(id, value, isCritical)
  }
}

function checkExtension(id: string, value: Der, isCritical: boolean): void {
  const known = Object.hasOwn(extensions, id) ? extensions[id] : undefined
  if (known === undefined) return
  if (isCritical && known.plain) throw new Unreadable(`its ${known.name} is marked as critical: Go refuses it`)
  try {
    known.check(value)
  } catch (error) {
    throw error instanceof Unreadable ? new Unreadable(`its ${known.name} is malformed: Go refuses it`) : error
  }
}

/** Go's int has 64 bits. */
function short(integer: Uint8Array): void {
  if (integer.length > 8) throw new Unreadable()
}

function demand(isSo: boolean): void {
  if (!isSo) throw new Unreadable()
}

function ascii(text: Uint8Array): string {
  demand(isAscii(text))
  return Buffer.from(text).toString('latin1')
}

function checkBasicConstraints(value: Der): void {
  const constraints = value.enter()
  if (constraints.isNext(tags.boolean)) constraints.boolean()
  if (!constraints.isNext(tags.integer)) return
  const length = constraints.integer()
  short(length)
  demand((length[0] ?? 0) < 0x80)
}

/** An address of mail, a DNS name, a URI, an IP address. */
function checkAlternativeName(list: Der): void {
  const { tag, body } = list.any()
  if (tag === fieldTag(1) || tag === fieldTag(2)) ascii(body)
  if (tag === fieldTag(6)) checkUri(ascii(body))
  if (tag === fieldTag(7)) demand(body.length === 4 || body.length === 16)
}

/** A little stricter than Go's net/url, which takes spaces in a path, and texts without a scheme. */
const uri =
  /^[a-z][a-z0-9+.-]*:(?:\/\/(?:[\w.~!$&'()*+,;=:%-]*@)?(?<host>[\w.~!$&'()*+,;=-]*(?::\d*)?|\[[0-9a-f:.]+\](?::\d*)?)(?=[/?#]|$)|(?!\/\/))[!-~]*$/i

function checkUri(text: string): void {
  const found = uri.exec(text)
  demand(found !== null && !/%(?![0-9a-f]{2})/i.test(text) && isDomain(found.groups?.host ?? ''))
}

function isDomain(name: string): boolean {
  return name === '' || (/^[!-~]+$/.test(name) && name.split('.').every((label) => label !== ''))
}

/** A domain of a constraint may begin with a dot: all that are below it. */
const isConstraint = (name: string): boolean => name === '' || (name !== '.' && isDomain(name.replace(/^\./, '')))

function checkNameConstraints(value: Der): void {
  const constraints = value.enter()
  const subtrees = [constraints.optional(around(0)), constraints.optional(around(1))]
  demand(value.isEmpty && constraints.isEmpty && subtrees.some((one) => one?.isEmpty === false))
  for (const subtree of subtrees) if (subtree) each(subtree, (list) => checkConstraint(list.enter()))
}

function checkConstraint(subtree: Der): void {
  const { tag, body } = subtree.any()
  switch (tag) {
    case fieldTag(1):
      checkMail(ascii(body))
      return
    case fieldTag(2):
      demand(isConstraint(ascii(body)))
      return
    case fieldTag(6):
      demand(isConstraint(ascii(body)) && !/^[\d.]+$|:/.test(ascii(body)))
      return
    case fieldTag(7): {
      const half = body.length / 2
      const mask = [...body.subarray(half)].map((byte) => byte.toString(2).padStart(8, '0')).join('')
      demand((half === 4 || half === 16) && /^1*0*$/.test(mask))
    }
  }
}

/** A domain, or an address. Stricter than Go, which takes a quoted name. */
function checkMail(text: string): void {
  const [name = '', domain, ...more] = text.split('@')
  if (domain === undefined) demand(isConstraint(text))
  else
    demand(
      /^[\w!#$%&'*+/=?^`{|}~.-]+$/.test(name) && isDomain(name) && domain !== '' && isDomain(domain) && !more.length,
    )
}

function checkDistributionPoint(list: Der): void {
  const names = list.enter().optional(around(0))?.enter(around(0))
  while (names?.isNext(fieldTag(6))) names.any()
}

function checkPolicies(value: Der): void {
  const known = new Set<string>()
  each(value.enter(), (list) => {
    const id = list.enter().body(tags.oid)
    checkArcs(id)
    const name = Buffer.from(id).toString('latin1')
    demand(!known.has(name))
    known.add(name)
  })
}

function checkMapping(list: Der): void {
  const mapping = list.enter()
  for (let count = 0; count < 2; count++) mapping.body(tags.oid)
}

function checkPolicyConstraints(value: Der): void {
  const constraints = value.enter()
  for (const number of [0, 1]) if (constraints.isNext(fieldTag(number))) short(constraints.integer(fieldTag(number)))
}
