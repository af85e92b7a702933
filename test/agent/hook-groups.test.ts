/** Which directories run their hooks together. */
import t from 'tap'
import { DirectoryState } from '../../src/agent/directory-state.js'
import { hookGroups } from '../../src/agent/hook-groups.js'
import type { Hook } from '../../src/config/hooks.js'
import { directoryOf } from '../directories/objects.js'

function state(path: string, ...keys: string[]): DirectoryState {
  const policy = { timeout: 1, retries: 0, jitter: 0, place: '' }
  const hooks = keys.map((key): Hook => ({ type: 'exec', command: ['/x'], key, name: key, ...policy }))
  return new DirectoryState(directoryOf([], { path, afterPublish: hooks }))
}

/** The paths of each group, as one sorted text. */
function grouped(states: DirectoryState[], fileSystemOf: (path: string) => string = () => 'one'): string[] {
  const groupOf = hookGroups(states, fileSystemOf)
  const groups = new Map<string, string[]>()
  for (const { hooksOperation, path } of states) {
    const name = groupOf(hooksOperation)
    groups.set(name, [...(groups.get(name) ?? []), path])
  }
  return [...groups.values()].map((paths) => paths.sort().join(' ')).sort()
}

await t.test('directories that have a hook in common, also by way of others', async (t) => {
  const states = [
    state('/a', 'x'),
    state('/b', 'y'),
    state('/c', 'z'),
    state('/d'),
    state('/e', 'w', 'y', 'x'),
    state('/f', 'w'),
  ]
  t.strictSame(grouped(states), ['/a /b /e /f', '/c', '/d'])
  t.strictSame(grouped([...states].reverse()), ['/a /b /e /f', '/c', '/d'], 'in whatever order they stand')
})

await t.test('directories of several file systems never wait for one another', async (t) => {
  const states = [state('/a/1', 'x'), state('/a/2', 'x'), state('/b/1', 'x')]
  t.strictSame(
    grouped(states, (path) => path.slice(0, 2)),
    ['/a/1 /a/2', '/b/1'],
  )
})
