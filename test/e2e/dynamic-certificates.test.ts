/** Kubernetes' own file watch, as its servers follow their certificates, sees each pair that holdfast publishes, whole and soon. */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { history as past, replaceDirectory } from '../../src/durable/index.js'
import { seeingAll } from '../seeing-all.js'
import { findProgram } from './assets.js'
import { Authority } from './authority.js'
import { endProcess, startProcess, workingDirectory } from './guard.js'
import { isKind } from '../crash/judge/names.js'

await t.test("client-go's dynamic certificates load each rotation, and never a mixture of two", async (t) => {
  const authority = await Authority.create(join(workingDirectory, 'authority'))
  const issued = await Promise.all(['a', 'b', 'c', 'd'].map((name) => authority.server(name)))
  const pairs = issued.map(({ certificate, key }) => ({
    'tls.crt': readFileSync(certificate, 'utf8'),
    'tls.key': readFileSync(key, 'utf8'),
  }))
  const digest = (pair: (typeof pairs)[number]): string =>
    createHash('sha256').update(pair['tls.crt']).update(pair['tls.key']).digest('hex')
  const target = join(workingDirectory, 'certs', 'serving')
  mkdirSync(dirname(target))
  const history = { keep: 5, maxAge: null }
  const looking = await lookingPublisher(t)
  if (looking === undefined) t.comment('not all processes can be looked at here: whenUnused would keep everything')
  // Three rotations of each kind: the old content goes, or is copied first, or goes once no process seems to use it.
  const kinds = [
    (files: Files) => replaceDirectory(target, { files }),
    (files: Files) => replaceDirectory(target, { files, history }),
    ...(looking ? [(files: Files) => looking(target, files)] : []),
  ]
  const publish = (pair: Files, rotation = 0) => kinds[Math.floor(rotation / 3)]?.(pair)

  const [first, ...rest] = [...pairs, ...pairs, ...pairs].slice(0, 1 + 3 * kinds.length)
  if (!first) throw new Error('unreachable')
  await publish(first)
  const follower = startProcess(await findProgram('dynamic-certificates'), [target], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  t.teardown(() => endProcess(follower, 'SIGKILL'))
  if (!follower.stdout) throw new Error('unreachable')
  const lines = createInterface(follower.stdout)[Symbol.asyncIterator]()
  const next = async (): Promise<unknown> => (await lines.next()).value
  t.equal(await next(), digest(first))
  let longest = 0
  for (const [rotation, pair] of rest.entries()) {
    const began = performance.now()
    await publish(pair, rotation)
    t.equal(await next(), digest(pair))
    longest = Math.max(longest, performance.now() - began)
  }
  t.comment(`the longest took ${longest.toFixed(0)} ms`)
  t.ok(longest < 30_000, 'a watch saw it, and not the look that it takes each minute')
  const kept = (await past.read(target))?.map(({ state }) => state)
  t.strictSame(kept, ['present', ...Array<string>(looking ? 5 : 3).fill('whole')])
  const old = readdirSync(dirname(target)).filter(isKind('staging', 'foreign'))
  t.strictSame(old, [], 'whoever only watches the files does not use them')
})

type Files = Record<string, string>

/** Publishes with `retire: whenUnused` in a process that may look at all others; undefined where none may. */
async function lookingPublisher(t: Test): Promise<((target: string, files: Files) => Promise<void>) | undefined> {
  const prefix = await seeingAll()
  if (prefix === undefined) return undefined
  const program = fileURLToPath(new URL('./publisher-program.js', import.meta.url))
  const [command, ...args] = [...prefix, process.execPath, program]
  const child = startProcess(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => endProcess(child, 'SIGKILL'))
  if (!child.stdin || !child.stdout) throw new Error('unreachable')
  const { stdin } = child
  const answers = createInterface(child.stdout)[Symbol.asyncIterator]()
  return async (target, files) => {
    stdin.write(`${JSON.stringify({ target, files })}\n`)
    t.equal((await answers.next()).value, 'replaced')
  }
}
