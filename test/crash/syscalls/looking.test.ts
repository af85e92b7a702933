/*
 * A process that publishes again and again, while its open, stat and list calls fail now and then: each answer is true, it leaks no
 * descriptor, and the errors leave no trace.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { contents, kept, scratch } from '../../durable/scratch.js'
import { library, program } from './distribution.js'
import { traced } from './traced.js'

t.setTimeout(300_000)

const skip = spawnSync('strace', ['-V']).status === 0 ? false : 'needs strace'
const [rounds, files] = [150, 3]

interface Round {
  readonly outcome?: string
  readonly code?: string
  readonly published?: boolean
  readonly message?: string
  readonly held?: number
  readonly descriptors: number
}

/** Prime numbers, so that the errors do not meet the same few calls of each round. */
const drizzles = [
  { code: 'EIO', call: 'openat', step: 37 },
  { code: 'EMFILE', call: 'openat', step: 41 },
  { code: 'EACCES', call: 'openat', step: 43 },
  { code: 'EIO', call: 'statx', step: 11 },
  { code: 'ENOMEM', call: 'getdents64', step: 13 },
] as const

for (const { code, call, step } of drizzles) {
  await t.test(`${code} from every ${step}th ${call}`, { skip }, async (t) => {
    const root = scratch(t)
    const here = (name: string): string => program(new URL(name, import.meta.url))
    const publisher = { hold: here('hold.js'), executable: here('publisher.js'), scratch: root }
    const target = join(root, 'certs')
    const { stdout, stderr, log } = await traced(publisher, [target, `${rounds}`, `${files}`], {
      strace: ['-e', `trace=${call}`, '-e', `inject=${call}:error=${code}:when=${step}+${step}`],
      thread: 'worker',
      limit: 120_000,
    })
    const results = JSON.parse(stdout || '[]') as Round[]
    t.equal(results.length, rounds, stderr)
    const injected = log.split('(INJECTED)').length - 1
    const failed = results.filter((round) => round.code !== undefined)
    t.ok(injected > 10 && failed.length > 10, `${injected} errors, ${failed.length} publications failed`)
    t.ok(results.some(({ outcome }) => outcome === 'replaced'))

    const wrong: string[] = []
    let before = 0
    results.forEach((result, index) => {
      const expected = result.published === false ? before : index + 1
      if (result.held !== expected) wrong.push(`round ${index + 1}: ${JSON.stringify(result)}, not ${expected}`)
      before = result.held ?? before
    })
    t.same(wrong, [], 'each answer is true')
    const open = results.map(({ descriptors }) => descriptors)
    t.equal(open.at(-1), Math.min(...open.slice(1)), `descriptors: ${open.join()}`)

    const { replaceDirectory } = await library()
    await replaceDirectory(target, { files: { a: 'dry' } })
    t.same(contents(target), { a: 'dry' })
    t.same(
      kept(root).filter((what) => what !== 'lock'),
      ['record'],
      'nothing is left',
    )
  })
}
