/** Selections of a directory, expanded to their matches. */
import { objectName } from '../../src/message-text.js'
import t from 'tap'
import { parseConfiguration } from '../../src/config/parse.js'
import { expand, referencesOf } from '../../src/config/references.js'
import type { ObservedState } from '../../src/objects/types.js'

async function directoryOf(...contents: object[]) {
  const text = JSON.stringify({
    apiVersion: 'holdfast.dev/v1alpha1',
    kind: 'AgentConfiguration',
    source: { namespace: 'web', files: { path: '/objects' } },
    directories: [{ path: '/srv/web', contents }],
  })
  const [directory] = (await parseConfiguration(text, '/holdfast.yaml')).directories
  if (directory === undefined) throw new Error('no directory')
  return directory
}

const named = (names: readonly string[]): ObservedState => ({ state: 'selected', names })

await t.test('expand adds a content for each matching object, with its name in the paths', async (t) => {
  const items = [{ key: 'tls.crt', path: '{name}/{name}.crt', mode: '0644' }]
  const directory = await directoryOf(
    { secret: 'first' },
    { secrets: { selector: ' app=web ', into: 'tls/x-{name}', items, optional: true } },
    { configMaps: { selector: 'app', namespace: 'other' } },
  )
  const states = new Map([
    ['Secret web/(app=web)', named(['a', 'b.c'])],
    ['ConfigMap other/(app)', named(['z'])],
  ])
  const expanded = expand(directory, (reference) => states.get(objectName(reference)))
  t.match(
    expanded.contents.filter(({ type }) => type === 'object'),
    [
      { reference: { kind: 'Secret', namespace: 'web', name: 'first' } },
      {
        place: 'directories[0].contents[1]',
        reference: { kind: 'Secret', namespace: 'web', name: 'a' },
        into: 'tls/x-a',
        optional: true,
        items: [{ key: 'tls.crt', path: 'a/a.crt', mode: 0o644 }],
        selected: true,
      },
      { reference: { name: 'b.c' }, into: 'tls/x-b.c', items: [{ path: 'b.c/b.c.crt' }] },
      { reference: { kind: 'ConfigMap', namespace: 'other', name: 'z' }, into: 'z', optional: false },
    ],
  )
  t.strictSame(referencesOf(expanded).map(objectName), [
    'Secret web/first',
    'Secret web/(app=web)',
    'Secret web/a',
    'Secret web/b.c',
    'ConfigMap other/(app)',
    'ConfigMap other/z',
  ])
})

await t.test(
  'expand answers the same object for the same matches, and no contents before the first answer',
  async (t) => {
    const directory = await directoryOf({ secrets: { selector: 'app=web' } })
    let state: ObservedState | undefined
    const now = () => expand(directory, () => state)
    t.strictSame(referencesOf(now()).map(objectName), ['Secret web/(app=web)'])
    state = { state: 'unknown', reason: 'AccessDenied', message: 'denied' }
    t.strictSame(referencesOf(now()).map(objectName), ['Secret web/(app=web)'])
    state = named(['a'])
    t.equal(now(), now())
    const before = now()
    state = named(['b'])
    t.not(now(), before)
    const plain = await directoryOf({ secret: 'a' })
    t.equal(
      expand(plain, () => undefined),
      plain,
    )
  },
)
