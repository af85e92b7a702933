/** Forms of texts in a pod, by the names that the table of rules gives them, with what is usually wrong. */
import { isIP } from 'node:net'
import { isDataKey, isLabel, isLabelValue, isObjectName, isPortName, isQualifiedName } from '../../kubernetes-names.js'

type IsText = (text: string) => boolean

const isWithoutClimb: IsText = (path) => !path.split('/').includes('..')
export const isLocal: IsText = (path) => !path.startsWith('/') && isWithoutClimb(path)

/** netutils.ParseIPSloppy takes 010.0.0.1 for 10.0.0.1; from 1.36 on, kubelet does not. */
const isSloppyAddress: IsText = (text) =>
  isIP(text.replaceAll(/(?<=^|[.:])0+(?=\d+(?:\.|$))/g, '')) !== 0 && !text.includes('%')
const isStrictAddress: IsText = (text) => isIP(text) !== 0 && !/^::ffff:/i.test(text)

const isSysctl: IsText = (text) =>
  text.length <= 253 && /^(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/.test(text)

const domain = /^_?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?(?:\._?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?)*$/
const isSearch: IsText = (text) => {
  const name = text.replace(/\.$/, '')
  return text === '.' || (name.length <= 253 && domain.test(name))
}

const isInitiator: IsText = (text) =>
  /^(?:iqn|eui|naa)/.test(text) &&
  /iqn\.\d{4}-\d{2}\.[A-Za-z0-9.-]+:[^,;*&$|\s]+$|^eui.[A-Za-z0-9]{16}$|^naa.[A-Za-z0-9]{32}$/.test(text)

/** `DOMAIN\user`; the domain is one of NetBIOS or of DNS (validateWindowsSecurityContextOptions). */
const isWindowsUser: IsText = (text) =>
  /^(?:[^\\\p{Cc}]{1,255}\\)?(?![. ]+$)[^"/\\:;|=,+*?<>@[\]\p{Cc}]{1,104}$/u.test(text) &&
  (!text.includes('\\') || /^(?:[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}|[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)\\/.test(text))

const isUpTo =
  (bytes: number): IsText =>
  (text) =>
    Buffer.byteLength(text) <= bytes

export const texts: Readonly<Record<string, readonly [IsText, string?]>> = {
  label: [isLabel, 'is not a valid name (a DNS label)'],
  subdomain: [isObjectName, 'is not a valid name (a DNS subdomain)'],
  'label name': [isQualifiedName, 'is not a valid name of a label'],
  'label value': [isLabelValue, 'is not a valid label value'],
  'data key': [isDataKey, 'is not a valid key'],
  'port name': [isPortName, 'is not a valid name for a port'],
  'host name': [(text) => text.length <= 64 && isObjectName(text)],
  'group and version': [(text) => text.split('/').length <= 2, 'is not a valid version of an API'],
  version: [(text) => /^(?:[^/]*\/)?[^/]+$/.test(text)],
  printed: [(text) => /^[ -<>-~]+$/.test(text), 'is missing, or not a valid name for a variable'],
  trimmed: [(text) => text.trim() === text],
  header: [(text) => /^[-A-Za-z0-9]+$/.test(text)],
  sysctl: [isSysctl],
  search: [isSearch],
  initiator: [isInitiator, 'is not a valid name in iSCSI'],
  'Windows user': [isWindowsUser],
  credential: [(text) => text !== '' && isUpTo(65_536)(text)],
  manager: [(text) => isUpTo(128)(text) && /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u.test(text)],
  subresource: [isUpTo(256)],
  tenant: [isUpTo(64)],
  profile: [(text) => text !== '' && text.trim() === text && isUpTo(4095)(text)],
  pairs: [(text) => text.split(',').every((pair) => /^(?:[^:[\]]*|\[[^[\]]*\]):[^:[\]]*$/.test(pair))],
  address: [isSloppyAddress, 'is not an IP address'],
  'strict address': [isStrictAddress, 'is not an IP address, without zeros in front'],
  'local path': [isLocal, 'must be a relative path without ".."'],
  'local file': [(path) => isLocal(path) && !path.startsWith('..'), 'must be a relative path without ".."'],
  'path without climb': [isWithoutClimb, 'must not contain ".."'],
  'absolute path': [(path) => path.startsWith('/'), 'must be an absolute path'],
  'path of one name': [(name) => !name.includes('/')],
  'field of resources': [(text) => /^(?:limits|requests)\.(?:cpu|memory|ephemeral-storage|hugepages-.*)$/s.test(text)],
}
