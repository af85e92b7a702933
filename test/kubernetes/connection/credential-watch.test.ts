import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { connect } from '../../../src/kubernetes/connection/connection.js'
import { CredentialWatch } from '../../../src/kubernetes/connection/credential-watch.js'
import { fingerprint } from '../../../src/regular-file.js'
import { until } from '../../until.js'
import { kubeconfig, loadKubeconfig } from '../credentials/kubeconfig-text.js'
import { startServer } from './api-server.js'
import { temporaryDirectory } from './certificates.js'
import { authority, once, serving } from './connected.js'

/** Milliseconds between looks here, and looks of another client in which a client at rest must make none. */
const interval = 20
const looks = 20

/** Looks at a missing file, which cannot be watched: once in each interval. Answers how often it has. */
function restlessWatch(t: Test): () => number {
  let seen = 0
  const watch = new CredentialWatch({
    files: () => ['/proc/self/no-such-file'],
    isCurrent: () => Promise.resolve(++seen > 0),
    interval,
  })
  t.teardown(() => watch.close())
  watch.soon()
  return () => seen
}

await t.test('a client at rest does not look at its files until one of them changes', async (t) => {
  const directory = temporaryDirectory()
  const running = await startServer({ serving })
  writeFileSync(join(directory.path, 'ca'), authority.certificate)
  const settings = kubeconfig({ server: running.url, 'certificate-authority': 'ca' }, {})
  const access = await loadKubeconfig(directory.path, settings)
  let seen = 0
  const counted = Object.assign(Object.create(access) as typeof access, {
    current: () => access.current(),
    files: () => access.files(),
    differs: (rejected: Parameters<typeof access.differs>[0]) => {
      seen += 1
      return access.differs(rejected)
    },
  })
  const api = connect(counted, { version: '1', limits: { look: interval } })
  t.teardown(async () => {
    await api.close()
    await running.close()
    directory.remove()
  })
  await api.get('/', {}, once)
  await until('the first look is made', () => seen > 0)
  const before = seen
  const looksOfAnother = restlessWatch(t)
  await until('another client has looked often', () => looksOfAnother() >= looks)
  t.ok(seen - before <= 1, `${seen - before} looks in the time of ${looks}`)
  const atRest = seen
  writeFileSync(join(directory.path, 'ca'), `${authority.certificate}\n`)
  await until('it looks again', () => seen > atRest)
})

/** A file at `way/in/file`, where `way` is a link to `first`, and what puts another one in its place. */
const replacements: Readonly<Record<string, (at: (path: string) => string) => void>> = {
  'written in place': (at) => writeFileSync(at('first/in/file'), 'other'),
  'renamed over': (at) => {
    writeFileSync(at('first/in/new'), 'other')
    renameSync(at('first/in/new'), at('first/in/file'))
  },
  'of another directory': (at) => {
    renameSync(at('first/in'), at('first/out'))
    renameSync(at('second/in'), at('first/in'))
  },
  'behind another link': (at) => {
    symlinkSync('second', at('new'))
    renameSync(at('new'), at('way'))
  },
  'removed, and written again': (at) => {
    rmSync(at('first/in/file'))
    writeFileSync(at('first/in/file'), 'other')
  },
}

for (const [what, replace] of Object.entries(replacements)) {
  await t.test(`CredentialWatch looks after a change: a file ${what}`, async (t) => {
    const directory = temporaryDirectory()
    const at = (path: string): string => join(directory.path, path)
    for (const name of ['first', 'second']) {
      mkdirSync(at(`${name}/in`), { recursive: true })
      writeFileSync(at(`${name}/in/file`), name)
    }
    symlinkSync('first', at('way'))
    const file = at('way/in/file')
    const inForce = await fingerprint(file)
    let answers: boolean[] = []
    const watch = new CredentialWatch({
      files: () => [file],
      isCurrent: async () => {
        const isCurrent = (await fingerprint(file)) === inForce
        answers.push(isCurrent)
        return isCurrent
      },
      interval,
    })
    t.teardown(() => {
      watch.close()
      directory.remove()
    })
    watch.soon()
    await until('the first look is made', () => answers.length > 0)
    t.strictSame(answers, [true])
    answers = []
    replace(at)
    await until('it sees the change', () => answers.includes(false))
    await until('it looks again while they differ', () => answers.filter((isCurrent) => !isCurrent).length > 2)
  })
}

await t.test('CredentialWatch looks again and again at a file that cannot be watched', async (t) => {
  const looksOfThis = restlessWatch(t)
  t.ok(await until('it looks for the third time', () => looksOfThis() > 2))
})
