/** Which objects of the files a selector matches, and what stays unknown beside an unreadable file. */
import t from 'tap'
import { selectionReference, type ObservedState } from '../../../src/objects/types.js'
import { Directory } from './directory.js'

const selection = selectionReference('Secret', 'kube-system', 'app=web')

const labelled = (name: string, labels: string, kind = 'Secret'): string =>
  `apiVersion: v1\nkind: ${kind}\nmetadata:\n  name: ${name}\n  labels: ${labels}\n`

async function until(directory: Directory, expected: ObservedState['state'], names?: readonly string[]) {
  const { recorder } = directory
  await recorder.until(`${expected} ${String(names)}`, () => {
    const last = recorder.last(selection)?.observation
    const same = last?.state !== 'selected' || names === undefined || names.join() === last.names.join()
    return last?.state === expected && same
  })
  return recorder.last(selection)?.observation
}

await t.test('a selection matches objects of its kind and namespace', async (t) => {
  const directory = new Directory(t)
  directory.write('a.yaml', labelled('b', '{ app: web, tier: }'))
  directory.write('c.yaml', `${labelled('a', '{ app: web }')}---\n${labelled('c', '{ app: db }')}`)
  directory.write('d.yaml', labelled('d', '{ app: web }', 'ConfigMap'))
  directory.write('e.yaml', labelled('e', '{ app: web }\n  namespace: other'))
  directory.source().follow([{ reference: selection }])
  await until(directory, 'selected', ['a', 'b'])
  directory.rename('c.yaml', `${labelled('a', '{}')}---\n${labelled('c', '{ app: web }')}`)
  await until(directory, 'selected', ['b', 'c'])
  directory.remove('a.yaml')
  await until(directory, 'selected', ['c'])
  t.ok(directory.recorder.heartbeats.includes('Secret kube-system/(app=web)'))
  t.strictSame(directory.warnings, [])
})

await t.test(
  'an unreadable file leaves its possible objects in a selection; at the start, the selection is unknown',
  async (t) => {
    const directory = new Directory(t)
    directory.write('a.yaml', labelled('a', '{ app: web }'))
    directory.write('b.yaml', labelled('b', '{ app: web }'))
    directory.source().follow([{ reference: selection }])
    await until(directory, 'selected', ['a', 'b'])
    directory.write('broken.yaml', labelled('c', '{ app: 1 }'))
    // Readable files go on: a removed label is gone.
    directory.rename('a.yaml', labelled('a', '{ app: db }'))
    await until(directory, 'selected', ['b'])
    t.matchOnly(directory.warnings, [
      /broken\.yaml:1: Secret kube-system\/c: the label "app" must be a string: quote it/,
    ])
    // The object may be in the file that cannot be read.
    directory.remove('b.yaml')
    const lost = await until(directory, 'unknown')
    t.match(lost, { reason: 'ObjectInvalid', message: /\(app=web\): not every file can be read; broken\.yaml:1/ })
    directory.rename('broken.yaml', labelled('c', '{ app: "1" }'))
    await until(directory, 'selected', [])

    const other = new Directory(t)
    other.write('a.yaml', labelled('a', '{ app: web }'))
    other.write('broken.yaml', 'kind: [')
    other.source().follow([{ reference: selection }])
    t.match(await until(other, 'unknown'), { message: /broken\.yaml/ })
  },
)
