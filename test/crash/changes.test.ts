import t from 'tap'
import {
  answers,
  becomes,
  type Change,
  drop,
  edited,
  keep,
  move,
  negate,
  operator,
  postpone,
  quoted,
  without,
} from './changes.js'
import { Core } from './places.js'
import { withOtherNames } from './mutants/shown.js'

const text = `
const flags = READ | NOFOLLOW
export async function save(fs: FileSystem, file: Descriptor): Promise<boolean> {
  if (file.mode !== 0) await fs.chmod(file, 0)
  await fs.sync([file, fs.root])
  await fs.rename(file, 'noreplace')
  const found = (await fs.look(file)) ?? file.old
  if (found === undefined) return false
  return isGood(found) && found.links > 0
}
class Lock {
  release() {
    return [this.file].filter((one) => one.isOpen)
  }
}
`

/** The lines that are not those of the text. */
function changed(change: Change, ofText = text): string[] {
  const after = edited(ofText, change.edits(new Core([['a.ts', ofText]])))
  return after
    .split('\n')
    .filter((line) => !ofText.split('\n').includes(line))
    .map((line) => line.trim())
}

const cases: readonly (readonly [Change, ...string[]])[] = [
  [drop('save', 'chmod'), ';'],
  [drop('save', 'sync'), ';'],
  [without('flags', 'NOFOLLOW'), 'const flags = READ'],
  [without('save', 'sync', 0, 0), 'await fs.sync([fs.root])'],
  [without('save', 'isGood'), 'return found.links > 0'],
  [without('Lock.release', 'filter'), 'return [this.file]'],
  [becomes('replace', 'save', "'noreplace'"), "await fs.rename(file, 'replace')"],
  [becomes([], 'save', 'sync', 0), 'await fs.sync([])'],
  [answers(true, 'save', 'look'), 'const found = ((await fs.look(file), true)) ?? file.old'],
  [negate('save', 'if 2/2', 0), 'if (!(found === undefined)) return false'],
  [keep('save', 'old'), 'const found = file.old'],
  [keep('save', 'return 1/2'), 'return false'],
  [operator('>=', 'save', '>'), 'return isGood(found) && found.links >= 0'],
  [move('save', 'rename', 'sync'), ';'],
  [quoted('save', 'file.old', 'file'), 'const found = (await fs.look(file)) ?? file'],
]

await t.test('each change edits the place that its names lead to', async (t) => {
  for (const [change, ...lines] of cases) {
    const found = changed(change)
    t.ok(
      lines.every((line) => found.includes(line)),
      `${lines.join(' ')}: ${found.join(' ')}`,
    )
  }
  const [before, after] = move('save', 'rename', 'sync').edits(new Core([['a.ts', text]]))
  t.match(before?.text, /^await fs.rename/)
  t.equal(before?.start, text.indexOf('await fs.sync'))
  t.ok(after && before && after.start > before.start)
  const later = changed(postpone(['save', 'sync'], ['save', 'look']))
  t.matchOnly(later, [/push\(async \(\) => \{ await fs\.sync/, /^for \(const one of/, /^const found = /])
})

await t.test('a change needs no name of a variable', async (t) => {
  const other = withOtherNames(text)
  for (const [change, ...lines] of cases) {
    if (change.isQuoted) t.throws(() => changed(change, other), /does not have this once/)
    else t.equal(changed(change, other).length, changed(change).length, lines.join(' '))
  }
  t.throws(() => changed(drop('save', 'found')), /0 places/)
})

await t.test('a change of no place, or of one of several, is refused', async (t) => {
  t.throws(() => changed(drop('gone', 'sync')), /0 places; 0 are called gone/)
  t.throws(() => changed(drop('save', 'gone')), /0 places; 1 are called save/)
  t.throws(() => changed(drop('save', 'return')), /0 places/, 'one of two')
  t.throws(() => changed(drop('save', 'return 1/3')), /0 places/, 'one of three, where there are two')
  t.throws(() => changed(without('save', 'if 1/2')), /no place for this change/)
  const twice = new Core([
    ['a.ts', text],
    ['b.ts', text],
  ])
  t.throws(() => drop('save', 'sync').edits(twice), /2 places; 2 are called save/)
  const [edit] = drop('save', 'sync').edits(new Core([['a.ts', text]]))
  t.throws(() => edited(text, edit ? [edit, edit] : []), /changed twice/)
})
