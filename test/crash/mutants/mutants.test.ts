import t from 'tap'
import { battery } from './battery.js'
import { equivalents, ofRooms } from './equivalents.js'
import { namesIn } from './listed.js'
import { byName, mutantsOf, mutated, readSources, type Source, sourcesAt } from './mutants.js'
import { inOrder } from './order.js'
import { withOtherNames } from './shown.js'
import { answerOf } from './answer.js'

/** So many there are: the list may only get shorter. */
const equivalentsAtMost = 225

const text = `
const flags = READ | NOFOLLOW | EXCL
export async function look(path: string, tries = 3): Promise<boolean> {
  if (tries < 1 && path !== '') throw new Error('too often')
  try {
    await lock(path)
    await sync(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw error
  }
  return true
}
`

function changes(source: string): Record<string, string> {
  const lines = source.split('\n')
  return Object.fromEntries(
    mutantsOf('a.ts', source).map((mutant) => [
      mutant.id,
      mutated(source, mutant)
        .split('\n')
        .filter((line) => !lines.includes(line))
        .map((line) => line.trim())
        .join(' '),
    ]),
  )
}

await t.test('each place is changed by each operator that fits', async (t) => {
  t.match(changes(text), {
    'flags unflagged EXCL of READ | NOFOLLOW | EXCL': 'const flags = (READ | NOFOLLOW)',
    'flags unflagged READ of READ | NOFOLLOW': 'const flags = (NOFOLLOW) | EXCL',
    'look counted _ = 3': /tries = \(3 \+ 1\)/,
    "look negated _ < 1 && _ !== ''": /if \(!\(tries < 1 && path !== ''\)\)/,
    'look compared _ < 1': /if \(tries <= 1 &&/,
    "look compared _ !== ''": /&& path === ''\)/,
    "look shortened _ < 1 && _ !== ''": /if \(tries < 1\) throw/,
    "look swallowed throw new Error('too often')": /path !== ''\) ;$/,
    "look unrecognized codeOf(_) === 'ENOENT'": /=== 'ENONE'/,
    'look inverted return false': /return true/,
    'look inverted return true': /return false/,
    'look dropped await lock(_)': ';',
    'look dropped await sync(_)': ';',
    'look swapped await lock(_)': 'await lock(path)',
    'look swallowed throw _': ';',
  })
})

await t.test('a mutant keeps its name when something else is edited', async (t) => {
  const edited = `import { lock } from './lock.js'\n${text}\nfunction other(): void { call() }\n`
  const names = Object.keys(changes(edited))
  for (const name of Object.keys(changes(text))) t.ok(names.includes(name), name)
  t.equal(new Set(names).size, names.length, 'no two have one name')
})

await t.test('an assertion that fails is a kill; what hangs or breaks is none', async (t) => {
  const name = 'test/a.test.ts'
  const tap = (
    failure: string,
  ): string => `TAP version 14\n# file: test/a.test.ts\n# Subtest: x\n    not ok 1 - ${failure}
not ok 1 - x # time=3ms\n  ---\n  at: a\n  ...\n1..1\n`
  const verdict = (failure: string, code: number | null = 1) => answerOf(name, code, tap(failure), '').verdict
  t.equal(verdict('should be equal\n      ---\n      diff: |\n        -1\n        +2\n      ...'), 'killed')
  t.equal(
    verdict('thrown\n      ---\n      type: TypeError\n      tapCaught: returnedPromiseRejection\n      ...'),
    'breaks',
  )
  t.equal(
    verdict('expected\n      ---\n      diff: |\n        +Cannot read properties of undefined\n      ...'),
    'breaks',
  )
  const source = 'source: |\n        // Cannot read properties of\n      ...'
  t.equal(verdict(`should be equal\n      ---\n      ${source}`), 'killed', 'the source of a test says nothing')
  t.equal(verdict('test unfinished\n      ---\n      ...'), 'hangs')
  t.equal(verdict('timeout!\n      ---\n      ...'), 'hangs')
  t.equal(answerOf(name, 1, 'SyntaxError', '').verdict, 'breaks')
  t.equal(answerOf(name, null, '', '').verdict, 'hangs')
  t.equal(answerOf(name, 0, 'ok 1', '').verdict, 'survived')
})

await t.test('a mutant keeps its name where its file is moved or renamed, and no two have one name', async (t) => {
  const at = (file: string): Source => ({ file, text, mutants: mutantsOf(file, text) })
  const names = (source: Source): string[] => [...byName([source]).keys()]
  t.same(names(at('src/durable/publish/a.ts')), names(at('native/b.ts')))
  t.throws(() => byName([at('native/a.ts'), at('src/b.ts')]), /native\/a\.ts and src\/b\.ts both hold /)
})

await t.test('each name in the lists is that of a mutant, and stands there once', async (t) => {
  const sources = readSources()
  t.ok(sources.some(({ file }) => file === 'src/durable/posix/file-system.ts'))
  const named = byName(sources)
  const listed = namesIn(equivalents)
  t.same(
    listed.filter((name) => !named.has(name)),
    [],
  )
  t.same(
    listed.filter((name, index) => listed.indexOf(name) !== index),
    [],
  )
  const moved = sources.map(({ text }, index) => mutantsOf(`src/${index}.ts`, withOtherNames(text)))
  t.same(
    // A function within another is a part of the name.
    moved.map((mutants) => mutants.map(({ id }) => id.replaceAll('Anew', ''))),
    sources.map(({ mutants }) => mutants.map(({ id }) => id)),
    'they need neither the name of a file nor that of a variable',
  )
  t.ok(namesIn(equivalents).length <= equivalentsAtMost, 'a mutant is shown to a test rather than called equivalent')
  const others = sourcesAt(['src', 'torture']).flatMap(({ mutants }) => mutants.map(({ id }) => id))
  t.equal(new Set(others).size, others.length, 'outside the core, too, each has a name of its own')
  t.same(
    namesIn(ofRooms).filter((name) => !others.includes(name)),
    [],
  )
})

await t.test(
  'a mutant is put before the test of its name first, and before no test that leads nowhere near it',
  async (t) => {
    const items = battery()
    const namesFor = (file: string, times = {}): string[] => inOrder(items, file, times).map(({ name }) => name)
    const names = namesFor('src/durable/path/lock.ts')
    t.equal(names[0], 'test/durable/path/lock.test.ts')
    t.equal(names[1], 'test/durable/lock-rules.test.ts')
    t.ok(names.includes('test/durable/publish/publish.test.ts'))
    t.notOk(names.includes('test/native/loop.test.ts'))
    t.match(names.at(-1), /^model: /)
    const slow = { 'test/durable/path/lock.test.ts': 60, 'test/durable/lock-rules.test.ts': 60 }
    const known = namesFor('src/durable/path/lock.ts', slow)
    t.equal(known[0], 'test/durable/path/lock.test.ts', 'however long it takes')
    t.equal(known.at(-1), 'test/durable/lock-rules.test.ts', 'what takes long stands behind the rest')
    const exchange = namesFor('src/durable/publish/replace.ts')
    t.ok(exchange.indexOf('test/durable/exchange.test.ts') < exchange.indexOf('test/durable/calls.test.ts'), 'by a row')
    const without = readSources().filter(
      ({ file, mutants }) => mutants.length > 0 && !inOrder(items, file).some(({ isTest }) => isTest),
    )
    t.same(
      without.map(({ file }) => file),
      [],
    )
  },
)
