/** Kubernetes' own file watch, as its servers follow their certificates, sees each pair that holdfast publishes, whole and soon. */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { readHistory, replaceDirectory } from '../../src/durable/index.js'
import { findProgram } from './assets.js'
import { Authority } from './authority.js'
import { endProcess, startProcess, workingDirectory } from './guard.js'

t.setTimeout(240_000)

await t.test('each rotation is loaded, and never a mixture of two', async (t) => {
  const authority = await Authority.create(join(workingDirectory, 'authority'))
  const issued = await Promise.all(['a', 'b', 'c', 'd'].map((name) => authority.server(name)))
  const pairs = issued.map(({ certificate, key }) => ({
    'tls.crt': readFileSync(certificate),
    'tls.key': readFileSync(key),
  }))
  const digest = (pair: (typeof pairs)[number]): string =>
    createHash('sha256').update(pair['tls.crt']).update(pair['tls.key']).digest('hex')
  const target = join(workingDirectory, 'certs', 'serving')
  mkdirSync(dirname(target))
  const history = { keep: 5, maxAge: null }
  // Three rotations of each kind: the old content goes, or is copied first.
  const kinds = [{}, { history }]
  const publish = (pair: (typeof pairs)[number], rotation = 0) =>
    replaceDirectory(target, { files: pair, ...kinds[Math.floor(rotation / 3)] })

  const [first, ...rest] = [...pairs, ...pairs].slice(0, 7)
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
  const kept = (await readHistory(target))?.map(({ state }) => state)
  t.strictSame(kept, ['present', 'whole', 'whole', 'whole'])
})
