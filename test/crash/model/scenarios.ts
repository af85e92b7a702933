import { access, byDefault, decoded, encoded, listOf } from './access-lists.js'
import { missing, type Content, type Target } from './content.js'
import { makeDirectory, makeEntry, type Scenario } from './scenario.js'

const certs: Target = { path: '/etc/pki/certs', form: 'exchange' }
const links: Target = { path: '/etc/pki/mounted', form: 'symlink' }
const manifest: Target = { path: '/etc/manifests/pod.yaml', form: 'file' }

/** Two contents differ in a file changed, one added, one removed, a nested one, modes and owner. */
const old: Content = {
  name: 'old',
  request: {
    files: { 'tls.crt': 'old certificate', 'tls.key': 'old key', gone: 'only in the old', 'sub/a': '1' },
  },
}
const next: Content = {
  name: 'new',
  request: {
    files: {
      'tls.crt': 'new certificate',
      'tls.key': { content: 'new key', mode: 0o640 },
      'sub/a': '1',
      'sub/deep/b': '2',
      added: '3',
    },
  },
}
const third: Content = {
  name: 'third',
  request: { files: { 'tls.crt': 'third certificate', other: '4' }, owner: { uid: 7, gid: 8 } },
}
/** Longer than two sectors, which can be torn apart. */
const long: Content = { name: 'long', request: { files: { bundle: 'certificate '.repeat(120), key: 'k' } } }
const small: Content = { name: 'small', request: { files: { a: 'a' } } }
const directoryContents = [old, next, third, long, small]

const pod = (name: string, fileMode: number): Content => ({
  name,
  request: { files: { file: `kind: Pod # ${name}\n` }, fileMode },
})
const fileContents = [pod('old', 0o600), pod('new', 0o600), pod('third', 0o644)]

const directories = ['/etc', '/etc/pki', '/etc/manifests']

function scenario(
  name: string,
  target: Target,
  before: readonly string[],
  step: string,
  successors: readonly string[],
): Scenario {
  return {
    name,
    targets: [target],
    contents: target.form === 'file' ? fileContents : directoryContents,
    directories,
    before: before.map((content) => [content]),
    step: [step],
    successors: successors.map((content) => [content]),
  }
}

function made(name: string, entries: Scenario['foreign'], step: string, contents: readonly Content[]): Scenario {
  return {
    ...scenario(name, { ...certs, adopt: true }, [], step, [step, 'third']),
    contents,
    ...(entries && { foreign: entries }),
  }
}

const label = 'system_u:object_r:cert_t:s0'
const labelled: Content = {
  ...next,
  labels: Object.fromEntries(
    ['', 'tls.crt', 'tls.key', 'sub', 'sub/a', 'sub/deep', 'sub/deep/b', 'added'].map((path) => [path, label]),
  ),
}

/** User 1000 may read the directory, and its entries as far as their mode lets the group. */
const opened = listOf(7, 5, 5, 5, 5)
const below = encoded(
  new Map([
    [access, opened],
    [byDefault, opened],
  ]),
)
const top = encoded(decoded(below).set('user.note', 'kept'))
const certificate = (owner: number, group: number, other: number): string =>
  encoded(
    new Map([
      [access, listOf(owner, 4, group, 4, other)],
      ['user.note', 'of the certificate'],
    ]),
  )
const inherited = (group: number): string => encoded(new Map([[access, listOf(6, 5, group, group, 0)]]))

/** The entries that stay with their path; the others inherit. */
const kept = { '': { mode: 0o755, extended: top }, 'tls.crt': { mode: 0o640, extended: certificate(6, 0, 0) } }
const directory = { mode: 0o755, extended: below }
const secret = { mode: 0o600, extended: inherited(0) }
const withLists: Content = {
  ...labelled,
  extended: {
    ...kept,
    'tls.key': { mode: 0o640, extended: inherited(4) },
    sub: directory,
    'sub/deep': directory,
    'sub/a': secret,
    'sub/deep/b': secret,
    added: secret,
  },
}
const thirdWithLists: Content = {
  ...third,
  labels: { '': label, 'tls.crt': label, other: label },
  extended: { ...kept, other: secret },
}

/** Those with the fewest instants first: they find their faults sooner. */
export const scenarios: readonly Scenario[] = [
  scenario('first publication', certs, [], 'small', ['small', 'third']),
  scenario('first publication with new ancestors', { path: '/etc/a/b/c/certs', form: 'exchange' }, [], 'small', [
    'small',
    'third',
  ]),
  scenario('the same content again', certs, ['old'], 'old', ['old', 'new']),
  scenario('symlink form, the same names', links, ['old'], 'old', ['old', 'third']),
  scenario('a file, first', manifest, [], 'old', ['old', 'third']),
  scenario('a file, replaced', manifest, ['old'], 'new', ['new', 'old', 'third']),
  scenario('symlink form, first', links, [], 'small', ['small', 'third']),
  scenario('replacement', certs, ['old'], 'new', ['new', 'old', 'third']),
  {
    ...scenario('replacement of what somebody uses', { ...certs, retire: 'whenUnused' }, ['small'], 'third', [
      'third',
      'small',
    ]),
    used: 'small',
  },
  scenario('replacement with history', { ...certs, history: 1 }, ['third', 'small'], 'third', ['third', 'small']),
  scenario('symlink form with history', { ...links, history: 1 }, ['third', 'small'], 'third', ['third', 'small']),
  {
    ...scenario('rollback', { ...certs, history: 2 }, ['third', 'small'], 'third', ['third', 'small']),
    rollback: true,
  },
  {
    ...scenario('after a careless chmod', { ...certs, history: 1 }, ['small'], 'third', ['third', 'small']),
    careless: true,
  },
  scenario('removal', { ...certs, history: 1 }, ['third', 'small'], missing, [missing, 'third']),
  scenario('removal of the symlink form', links, ['small'], missing, [missing, 'small']),
  scenario('replacement of the second publication', certs, ['third', 'small'], 'third', ['third', 'small', 'new']),
  scenario('replacement by large files', certs, ['small'], 'long', ['long', 'small']),
  made(
    'replacement of a foreign directory with labels, ACLs and user attributes',
    (disk) => {
      makeDirectory(disk, certs.path, 0o755, label, top)
      makeEntry(disk, `${certs.path}/tls.crt`, 'file', 0o644, 'foreign', label, certificate(6, 4, 4))
      makeDirectory(disk, `${certs.path}/sub`, 0o755, label, below)
      makeEntry(disk, `${certs.path}/sub/x`, 'file', 0o644, 'foreign', label)
    },
    'new',
    [withLists, thirdWithLists],
  ),
  {
    ...scenario('adoption with history of a foreign directory', { ...certs, takesOver: true }, [], 'taken', [
      'taken',
      'small',
    ]),
    contents: [{ name: 'taken', request: { files: { 'tls.crt': 'new' } } }, small],
    foreign: (disk) => {
      makeDirectory(disk, certs.path, 0o755)
      makeEntry(disk, `${certs.path}/tls.crt`, 'file', 0o644, 'foreign certificate')
    },
  },
  scenario('symlink form, again', links, ['old'], 'new', ['new', 'old', 'third']),
  {
    name: 'two targets of one family',
    targets: [
      { path: '/etc/pki/pod-6', form: 'exchange', family: 'pod' },
      { path: '/etc/pki/pod-7', form: 'exchange', family: 'pod' },
    ],
    contents: directoryContents,
    directories,
    before: [['old', undefined]],
    step: ['new', undefined],
    successors: [
      [undefined, 'small'],
      ['new', undefined],
      ['third', undefined],
    ],
  },
  {
    name: 'a batch: two in one parent, one with new ancestors, one of links',
    targets: [
      { path: '/etc/pki/one', form: 'exchange' },
      { path: '/etc/pki/two', form: 'exchange' },
      { path: '/etc/new/three', form: 'exchange' },
      { path: '/etc/pki/four', form: 'symlink' },
    ],
    contents: directoryContents,
    directories,
    before: [['small', 'old', undefined, 'small']],
    step: ['third', 'small', 'small', 'third'],
    successors: [
      ['third', 'small', 'small', 'third'],
      ['small', undefined, 'third', 'small'],
    ],
  },
]
