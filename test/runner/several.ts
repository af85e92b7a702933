/** Runs test files one after the other in this process, each announced by a comment: `node several.js FILE...`. */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { compiled } from './files.js'
import { fileComment } from './tally.js'

/** tap ends the root of all tests as soon as it is idle after its first teardown: for these files, that is after the last. */
const teardowns: (() => unknown)[] = []
const teardown = t.teardown.bind(t)
t.teardown = (last) => teardowns.unshift(last)

for (const file of process.argv.slice(2)) {
  // A test that breaks its plan ends the root; the files behind it are run by another process.
  if (t.results) break
  t.comment(`${fileComment}${file}`)
  try {
    await import(pathToFileURL(resolve(compiled(file))).href)
  } catch (error) {
    t.fail('It cannot be loaded, or throws outside its tests', { error })
  }
}

t.teardown = teardown
t.teardown(async () => {
  for (const last of teardowns) await last()
})
// A server that only a teardown closes would keep the process waiting for ever.
if (!t.results) t.end()
