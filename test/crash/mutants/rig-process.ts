/*
 * Runs test files one after the other in this process, again and again, each time with newly loaded modules: its parent makes a directory
 * of links for each time, and sends its path with the files. `rig.ts` is the other side.
 */
import { once } from 'node:events'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { answerOf, type Answer } from './answer.js'

export interface Order {
  readonly id: number
  /** Where the program and its tests are found this time. */
  readonly directory: string
  /** Compiled test files, from there. */
  readonly files: readonly string[]
}

/** Which file begins now; the answer, at the end. */
export type Reply = { readonly id: number } & ({ readonly begins: string } | Answer)

let printed = ''
process.stdout.write = (text: string | Uint8Array): boolean => {
  printed += typeof text === 'string' ? text : Buffer.from(text).toString('utf8')
  return true
}

/** The module that `import t from 'tap'` gives a test file here (`rig.ts` writes it): the root of its tests. */
const shared = globalThis as { __testRoot?: unknown; __testAll?: boolean }

/** `all`: the tests behind the first failure, too. */
async function runFile(root: Test, directory: string, file: string, all = false): Promise<Answer> {
  printed = ''
  shared.__testAll = all
  await root.test(file, async (t) => {
    shared.__testRoot = t
    await import(`${pathToFileURL(`${directory}/${file}`).href}${all ? '?all' : ''}`)
  })
  await new Promise((resolve) => setImmediate(resolve))
  const failed = /^\s*not ok (?!.*# TODO)/m.test(printed)
  return answerOf(file, failed ? 1 : 0, printed, '')
}

/** Up to the first that has something to say. */
async function run(root: Test, { id, directory, files }: Order): Promise<Answer> {
  for (const file of files) {
    process.send?.({ id, begins: file } satisfies Reply)
    const first = await runFile(root, directory, file)
    // One test has broken: another may have something to say.
    const answer = first.verdict === 'breaks' ? await runFile(root, directory, file, true) : first
    if (answer.verdict !== 'survived') return answer
  }
  return { verdict: 'survived', by: '' }
}

// A test that does not end until the process does: tap ends its root as soon as nothing runs in it.
void t.test('rig', async (root) => {
  process.on('message', (order: Order) => {
    void run(root, order).then((answer) => process.send?.({ ...answer, id: order.id } satisfies Reply))
  })
  process.channel?.ref()
  await once(process, 'disconnect')
  process.exit(0)
})
