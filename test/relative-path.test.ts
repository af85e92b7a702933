import t from 'tap'
import { directoriesAbove } from '../src/relative-path.js'

await t.test('the directories above a path, the first above all others', async (t) => {
  t.same(directoriesAbove('a/b/c'), ['a', 'a/b'])
  t.same(directoriesAbove('a'), [])
  t.same(directoriesAbove(''), [])
  t.same(directoriesAbove('a/b/'), ['a', 'a/b'], 'a directory by its name, with what is in it to come')
})
