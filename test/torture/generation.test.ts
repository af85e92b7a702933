import { chmodSync, mkdirSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { messageOf } from '../../src/errors.js'
import { examine, filesOfGeneration } from '../../torture/generation.js'
import { scratch } from '../cli/holdfast.js'

const seed = 'a-seed'

function write(directory: string, files: Record<string, Buffer>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), content)
  }
}

await t.test(
  'filesOf makes a generation of its number and the seed alone, and each differs from the others',
  async (t) => {
    t.same(filesOfGeneration(seed, 7), filesOfGeneration(seed, 7))
    const contents = [1, 2, 3, 4].flatMap((generation) => Object.values(filesOfGeneration(seed, generation)))
    t.equal(new Set(contents.map((content) => content.toString('latin1'))).size, contents.length)
    t.notSame(filesOfGeneration(seed, 7), filesOfGeneration('another', 7))
  },
)

await t.test('examine tells whole, mixed, torn and missing generations apart', async (t) => {
  const directory = join(scratch(t), 'target')
  const files = filesOfGeneration(seed, 7)
  const [first = '', second = ''] = Object.keys(files)
  const other = filesOfGeneration(seed, 8)
  /** A change in a whole generation, and the finding afterwards. */
  const cases: [string, () => void, object][] = [
    ['whole', () => undefined, { state: 'whole', generation: 7 }],
    [
      'a file of another generation',
      () => write(directory, { [first]: other[first] ?? Buffer.alloc(0) }),
      { state: 'mixed', problem: /of generation 7.*of generation 8/ },
    ],
    [
      'an empty file',
      () => truncateSync(join(directory, first), 0),
      { state: 'torn', problem: /0 bytes.*does not begin/ },
    ],
    [
      'zeros in place of the content',
      () => writeFileSync(join(directory, first), Buffer.alloc(files[first]?.length ?? 0)),
      { state: 'torn', problem: /does not begin/ },
    ],
    [
      'the end is missing',
      () => truncateSync(join(directory, first), (files[first]?.length ?? 0) - 1),
      { state: 'torn', problem: /bytes of/ },
    ],
    [
      'one other byte',
      () => {
        const changed = Buffer.from(files[second] ?? Buffer.alloc(0))
        changed[150] = (changed[150] ?? 0) ^ 1
        write(directory, { [second]: changed })
      },
      { state: 'torn', problem: /differs from byte 150/ },
    ],
    ['a file is missing', () => rmSync(join(directory, second)), { state: 'torn', problem: /is missing/ }],
    [
      'a file more',
      () => write(directory, { more: files[first] ?? Buffer.alloc(0) }),
      { state: 'torn', problem: /more is none of its files/ },
    ],
    [
      'a link in the place of a file',
      () => {
        rmSync(join(directory, first))
        symlinkSync('x', join(directory, first))
      },
      { state: 'torn', problem: /cannot be read: ELOOP/ },
    ],
    [
      'another seed',
      () => {
        rmSync(directory, { recursive: true })
        write(directory, filesOfGeneration('another', 7))
      },
      { state: 'torn' },
    ],
    [
      'nothing in it',
      () => {
        rmSync(directory, { recursive: true })
        mkdirSync(directory)
      },
      { state: 'torn', problem: /empty/ },
    ],
    ['no directory', () => rmSync(directory, { recursive: true }), { state: 'missing' }],
  ]
  for (const [name, change, expected] of cases) {
    rmSync(directory, { recursive: true, force: true })
    write(directory, files)
    change()
    t.match(await examine(directory, seed), expected, name)
  }
})

await t.test('examine does not judge files that this process may not read, and so accuses no disk', async (t) => {
  const directory = join(scratch(t), 'target')
  const files = filesOfGeneration(seed, 7)
  write(directory, files)
  const [first = ''] = Object.keys(files)
  for (const path of [directory, join(directory, first)]) {
    const mode = statSync(path).mode & 0o777
    chmodSync(path, 0)
    const found = await asNobody(() => examine(directory, seed)).catch(messageOf)
    chmodSync(path, mode)
    t.match(found, /cannot examine .*target.* EACCES; run it as the user who began the run; nothing was judged/)
  }
  t.match(await examine(directory, seed), { state: 'whole' }, 'nothing has been changed')
})

/** Root may read a file of any mode. */
async function asNobody<T>(work: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return work()
  process.seteuid?.(65_534)
  try {
    return await work()
  } finally {
    process.seteuid?.(0)
  }
}
