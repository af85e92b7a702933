import { mkdirSync, promises, type BigIntStats, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { silent } from '../../../src/log.js'
import { CredentialFiles } from '../../../src/kubernetes/credentials/credential-files.js'
import { Credentials } from '../../../src/kubernetes/credentials/credentials.js'
import { until } from '../../until.js'
import { temporaryDirectory } from '../connection/certificates.js'
import { authority } from '../connection/connected.js'
import { kubeconfig } from './kubeconfig-text.js'

const directory = temporaryDirectory()
t.teardown(directory.remove)
const timing = { settle: 20, poll: 20 }
/** Cannot be watched. */
const missing = '/proc/self/no-such-file'

/** Counts the looks at a path. */
function looksAt(t: Test, path: string): () => number {
  const { stat } = promises
  let seen = 0
  const counting = (asked: string, options: { bigint: true }): Promise<BigIntStats> => {
    if (asked === path) seen += 1
    return stat(asked, options)
  }
  Object.assign(promises, { stat: counting })
  t.teardown(() => Object.assign(promises, { stat }))
  return () => seen
}

/** Credentials of kubeconfigs, whose changes nobody but they themselves look for. */
async function follow(t: Test, files: readonly string[]): Promise<Credentials> {
  const credentials = new Credentials({ environment: { KUBECONFIG: files.join(':') }, timing })
  t.teardown(() => credentials.close())
  await credentials.current()
  credentials.follow()
  return credentials
}

await t.test('credentials at rest do not look at their files until one of them changes', async (t) => {
  const at = (name: string): string => join(directory.path, name)
  writeFileSync(at('ca'), authority.certificate)
  writeFileSync(at('one'), kubeconfig({ server: 'https://127.0.0.1:1', 'certificate-authority': 'ca' }, {}))
  writeFileSync(at('two'), kubeconfig({ server: 'http://127.0.0.1:1' }, {}))
  const looks = looksAt(t, at('ca'))
  const credentials = await follow(t, [at('one')])
  await until('the first look is made', () => looks() > 1)
  const restless = looksAt(t, missing)
  await follow(t, [at('two'), missing])
  const before = looks()
  await until('others, whose file cannot be watched, have looked often', () => restless() >= 20)
  t.ok(looks() - before <= 1, `${looks() - before} looks in the time of ${restless()}`)
  let told = 0
  credentials.changes.on('changed', () => (told += 1))
  writeFileSync(at('ca'), `${authority.certificate}\n`)
  await until('they tell of others', () => told > 0)
  const ofKubeconfig = looksAt(t, at('one'))
  rmSync(at('one'))
  await until('they look again and again while a file is of no use', () => ofKubeconfig() > 20)
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
  await t.test(`CredentialFiles tell of a change: a file ${what}`, async (t) => {
    const own = temporaryDirectory()
    const at = (path: string): string => join(own.path, path)
    for (const name of ['first', 'second']) {
      mkdirSync(at(`${name}/in`), { recursive: true })
      writeFileSync(at(`${name}/in/file`), name)
    }
    symlinkSync('first', at('way'))
    const files = new CredentialFiles(silent)
    t.teardown(() => {
      files.close()
      own.remove()
    })
    await files.begin([at('way/in/file')])
    let told = 0
    const isWatched = await files.watch(() => (told += 1))
    t.ok(isWatched)
    t.notOk(await files.changed())
    replace(at)
    await until('it tells', () => told > 0)
    t.ok(await files.changed())
  })
}

await t.test('CredentialFiles say that a file cannot be watched', async (t) => {
  const files = new CredentialFiles(silent)
  t.teardown(() => files.close())
  await files.begin([missing])
  t.notOk(await files.watch(() => undefined))
})
