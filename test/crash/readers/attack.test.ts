/*
 * A user who may write beside the target replaces staged entries by symbolic links, while holdfast stages, publishes, recovers and removes
 * them. Such a writer can spoil the publication; but holdfast must not write, chmod, chown or remove anything outside.
 */
import { lstatSync, mkdirSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { scratch } from '../../durable/scratch.js'
import { library, program } from '../syscalls/distribution.js'
import { Cast } from './processes.js'

const rounds = process.env['HOLDFAST_SWEEP'] === 'cheap' ? 60 : 150
const padding = 'x'.repeat(3000)

/** Everything about the victim that could be changed: content, modes, owners, times. */
function portrait(path: string): string[] {
  return ['', ...readdirSync(path, { recursive: true, encoding: 'utf8' })].sort().map((name) => {
    const stats = lstatSync(join(path, name), { bigint: true })
    const text = stats.isFile() ? readFileSync(join(path, name), 'utf8') : ''
    return [name, stats.mode, stats.uid, stats.gid, stats.ctimeNs, stats.nlink, text].join(' ')
  })
}

/** The attacker goes on meanwhile: a link of a moment ago may be gone, or another entry. */
const removeLink = (path: string): void => {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return
  try {
    unlinkSync(path)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (!['ENOENT', 'EISDIR', 'EPERM'].includes(code)) throw error
  }
}

await t.test('nothing outside is touched', async (t) => {
  const { replaceDirectory } = await library()
  const root = scratch(t)
  const [parent, victim] = [join(root, 'parent'), join(root, 'victim')]
  mkdirSync(parent)
  mkdirSync(join(victim, 'sub'), { recursive: true })
  for (const name of ['file', 'other', 'sub/file']) writeFileSync(join(victim, name), 'precious')
  const before = portrait(victim)
  const cast = Cast.make()
  t.teardown(() => cast.end())
  const source = program(new URL('attacker.js', import.meta.url))
  const attacker = cast.start([process.execPath, source, parent, victim])
  const closed = once(attacker, 'close')
  attacker.stderr?.on('data', (chunk: Buffer) => t.comment(chunk.toString()))
  let said = ''
  attacker.stdout?.setEncoding('utf8').on('data', (chunk: string) => (said += chunk))
  if (attacker.stdout) await once(attacker.stdout, 'data')

  const target = join(parent, 'certs')
  const outcomes = new Map<string, number>()
  for (let round = 1; round <= rounds; round++) {
    const text = `${round} ${padding}`
    const files = { file: text, other: text, 'sub/file': { content: text, mode: 0o644 } }
    const outcome = await replaceDirectory(target, { files, mode: 0o750 }).then(
      (result) => result.outcome,
      (error: unknown) => (error as { code: string }).code,
    )
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    // A link that was exchanged into the target's place is refused from then on, as it should be.
    removeLink(target)
    for (const name of readdirSync(parent)) if (name.startsWith('.holdfast-')) removeLink(join(parent, name))
  }
  attacker.stdin?.end()
  t.same(await closed, [0, null])
  const struck = JSON.parse(said.slice(said.indexOf('\n') + 1)) as Record<string, number>
  t.comment(`struck ${JSON.stringify(struck)}; outcomes ${JSON.stringify(Object.fromEntries(outcomes))}`)
  t.same(portrait(victim), before, 'not even a time has changed')
  const total = Object.values(struck).reduce((sum, count) => sum + count, 0)
  t.ok(total > rounds / 20, 'it was attacked')
  t.ok(
    [...outcomes.keys()].some((outcome) => /^E/.test(outcome)),
    'and noticed',
  )
})
