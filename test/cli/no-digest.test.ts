/**
 * A short secret is found from an unkeyed digest of it by trial: logs and metrics hold none, in no form. (test/e2e/events.test.ts holds the
 * events to the same.)
 */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import t from 'tap'
import { readPublication } from '../../src/index.js'
import { until } from '../until.js'
import { holdfast, Node } from './holdfast.js'

/** Each digest of this content that a program might print. */
function digestsOf(content: string): string[] {
  return ['md5', 'sha1', 'sha256', 'sha512'].flatMap((name) =>
    (['hex', 'base64', 'base64url'] as const).map((form) => createHash(name).update(content).digest(form).slice(0, 8)),
  )
}

await t.test('neither log nor metrics hold a digest of content, in any outcome', async (t) => {
  const path = 'disk/app'
  const directory = {
    path,
    contents: [{ secret: 'pin' }],
    history: 2,
    afterPublish: [{ exec: ['/bin/true'] }, { exec: ['/bin/false'], retries: 0 }],
  }
  const node = new Node(t, [directory], { driftInterval: '1s' })
  // The agent has the lock while it compares.
  const patient = ['--lock-timeout', '1m']
  const target = node.path(path)
  const pins = ['4711', '0815', '2468']
  const digests = new Set(pins.flatMap(digestsOf))
  const note = async () => {
    const { digest = '', actual = '' } = (await readPublication(target)) ?? {}
    for (const text of [digest, actual]) digests.add(text.replace('sha256:', '').slice(0, 8))
  }
  const put = (pin: string) => node.put('Secret', 'pin', { pin })
  put('4711')
  const said: string[] = []
  const run = async (command: string, ...args: string[]) => {
    const { stderr, code } = await holdfast([command, ...args])
    t.equal(code, command === 'sync' ? 1 : 0, stderr)
    said.push(stderr)
    await note()
  }
  await run('sync', '--config', node.configuration, '--log-level', 'debug', '--log-format', 'json', '--hooks')
  const agent = node.agent(['--log-level', 'debug'])
  t.match(await agent.logged('Unchanged'), { outcome: 'unchanged', sequence: Number, digest: undefined })
  put('0815')
  const line = await agent.logged('Published')
  const { stdout } = await holdfast(['history', target, '-o', 'json'])
  const { contents } = JSON.parse(stdout) as { contents: { sequence: number }[] }
  t.match(line, { outcome: 'replaced', sequence: contents[0]?.sequence }, 'the log names the content as history does')
  await until('both hooks ran', () => agent.log().some(({ reason }) => reason === 'HookFailed'))
  await note()
  writeFileSync(`${target}/pin`, '2468')
  await note()
  await agent.logged('DriftRepaired')
  await run('rollback', target, ...patient)
  await agent.logged('RolledBack')
  await run('hold', target, ...patient)
  put('2468')
  await agent.logged('Held')
  await note()
  const metrics = await agent.get('/metrics')
  t.equal(await agent.end('SIGTERM'), 0)
  digests.delete('')
  const log = agent.text
  const everything = [log, metrics.text, ...said].join('\n').toLowerCase()
  t.ok(digests.size > 24 && everything.length > 5_000, 'there is something to be found, and where')
  t.strictSame(
    [...digests].filter((digest) => everything.includes(digest.toLowerCase())),
    [],
    'no digest',
  )
  t.strictSame(everything.match(/sha256:.|"digest"/g), null)
  // A digest of another kind, cut or keyed by nothing: the versions of files are digests of their times and sizes.
  const rest = everything.replaceAll(node.root.toLowerCase(), '').replace(/file:[0-9a-f]{32}/g, '')
  t.strictSame(rest.match(/(?<![0-9a-f.-])[0-9a-f]{16,}/g), null)
})
