/** Every change that a removal makes, in its order: what may go only once something else is durable, and what goes on after a kill. */
import t from 'tap'
import { removePublished, type RemovalOptions } from '../../src/durable/remove/removal.js'
import { publish } from '../../src/durable/publish/publish.js'
import { filePublication } from '../../src/durable/publish/replace.js'
import { namesFor } from '../../src/durable/path/names.js'
import { ModelError } from '../crash/model/model-disk.js'
import { ModelProcess } from '../crash/model/model-process.js'
import { Killed } from './intercepted.js'
import { numberOf } from './calls/scene.js'
import { names, published, refusal, target } from './model-target.js'

/** The changes of this call: STAGED is the name under which it goes, PROBE what asks whether the file system is up. */
async function changesOf(fs: ModelProcess, options: RemovalOptions = {}, path = target, until = Infinity) {
  const made: string[] = []
  fs.before = (call, name) => {
    if (!/^(create|write|sync|rename|remove)/.test(call)) return
    if (made.length >= until) throw new Killed()
    made.push(`${call} ${name}`)
  }
  const error = await refusal(removePublished(fs, path, options))
  fs.before = undefined
  const known = namesFor(path.slice(path.lastIndexOf('/') + 1))
  const probes = made.filter((line) => line.startsWith('createFile')).map((line) => line.slice('createFile '.length))
  const randoms = probes.filter((name) => known.stagingOf(name) !== undefined)
  const shown = made.map((line) => {
    const probed = randoms.reduce((text, name) => text.replace(name, 'PROBE'), line)
    return probed
      .replace(/\.holdfast-[0-9a-f]{16}-[0-9a-f]{16}/g, 'STAGED')
      .replace(/\.holdfast-[0-9a-f]{16}\./g, 'RECORD.')
  })
  return { error, made: shown }
}

/** Killed when it had made so many changes. */
async function interrupted(until: number, options: RemovalOptions = {}) {
  const scene = await published()
  const { error } = await changesOf(scene.fs, options, target, until)
  if (error === undefined) throw new Error('it came to its end')
  return { ...scene, fs: new ModelProcess(scene.disk) }
}

const probed = ['createFile PROBE', 'removeFile PROBE']
const recorded = ['createFile RECORD.2', 'write /etc/RECORD.2', 'sync /etc/RECORD.2 /etc /etc/certs /', ...probed]
const emptied = ['removeFile STAGED', 'removeFile a', 'removeDirectory STAGED', 'removeFile RECORD.1']
const aManifest = () => Promise.resolve('a manifest')

await t.test('a directory goes once its absence is durable, and its record once that is all of it', async (t) => {
  const { fs, beside } = await published()
  const { error, made } = await changesOf(fs)
  t.equal(error, undefined)
  const ended = ['sync /etc', 'removeFile RECORD.2', 'sync /etc']
  t.strictSame(made, [...recorded, 'rename STAGED', 'sync /etc', ...probed, ...emptied, ...ended])
  t.strictSame(beside(), [names.lock])
})

await t.test('a file goes in the same order', async (t) => {
  const { fs } = await published()
  const path = '/etc/pod.yaml'
  await publish([filePublication(fs, path, 'kind: Pod', {})])
  const { error, made } = await changesOf(fs, {}, path)
  t.equal(error, undefined)
  t.strictSame(made, [
    ...['createFile RECORD.2', 'write /etc/RECORD.2', 'sync /etc/RECORD.2 /etc /', ...probed],
    ...['rename STAGED', 'sync /etc', ...probed, 'removeFile STAGED', 'removeFile RECORD.1', 'sync /etc'],
    ...['removeFile RECORD.2', 'sync /etc'],
  ])
})

await t.test('killed after the rename: the next removal goes on, and syncs the ancestors, too', async (t) => {
  const { fs, beside } = await interrupted(6)
  const { error, made } = await changesOf(fs)
  t.equal(error, undefined)
  const ended = ['sync /etc /', 'removeFile RECORD.2', 'sync /etc /']
  t.strictSame(made, ['sync /etc /', ...probed, ...emptied, ...ended])
  t.strictSame(beside(), [names.lock])
})

await t.test('killed after the rename, and in use: a whole target goes back to its place, durably', async (t) => {
  const { fs, beside } = await interrupted(6)
  const { error, made } = await changesOf(fs, { usedBy: aManifest })
  t.match(error, {
    reason: 'InUse',
    published: false,
    message: /^\/etc\/certs is in use: a manifest; nothing was changed/,
  })
  t.strictSame(made, ['rename certs', 'sync /etc /'])
  t.strictSame(beside(), [names.record(1), names.record(2), names.lock, 'certs'])
})

await t.test(
  "killed after the rename, and another program's link in its place: the rest goes, and the link stays",
  async (t) => {
    const { fs, beside } = await interrupted(6)
    await fs.createLink(await fs.openPath('/etc'), 'certs', 'elsewhere')
    const { error } = await changesOf(fs)
    t.equal(error, undefined)
    t.strictSame(beside(), [names.lock, 'certs'])
  },
)

await t.test('killed after the rename, users unknown: a whole target counts as in its place, dry or not', async (t) => {
  for (const dryRun of [true, false]) {
    const { fs } = await interrupted(6)
    const usedBy = () => Promise.reject(new ModelError('EIO', 'scandir', '/proc'))
    t.match(await refusal(removePublished(fs, target, { dryRun, usedBy })), { code: 'EIO', published: false })
  }
})

await t.test('killed behind the first file, and in use: it has left its place, and nothing more goes', async (t) => {
  const { fs, beside } = await interrupted(11)
  const before = beside()
  const { error, made } = await changesOf(fs, { usedBy: aManifest })
  t.match(error, {
    reason: 'InUse',
    published: true,
    message: /^\/etc\/certs is in use: a manifest; .* left its place/,
  })
  t.strictSame([made, beside()], [['sync /etc /'], before])
})

await t.test('killed after the rename: each later failure says that the target has left its place', async (t) => {
  for (const call of ['sync', 'createFile', 'removeFile']) {
    const { fs } = await interrupted(6)
    fs.before = (name) => {
      if (name === call) throw new ModelError('EIO', 'x', '/etc')
    }
    const problem = `could not finish the removal of ${target}: x /etc: EIO`
    t.match(await refusal(removePublished(fs, target, {})), { code: 'EIO', published: true, problem })
  }
  const { fs } = await interrupted(6)
  const defect = new RangeError('a defect')
  fs.before = (name) => {
    if (name === 'sync') throw defect
  }
  t.equal(await refusal(removePublished(fs, target, {})), defect)
})

await t.test('a removal without a record removes the leftovers, and answers once that is durable', async (t) => {
  const { disk, parent, fs, beside } = await published()
  const left = names.staging('0123456789abcdef')
  const moved = [
    ['certs', undefined],
    [names.record(1), undefined],
    [left, numberOf(disk, target)],
  ] as const
  disk.link(parent, moved, 'by hand')
  const { error, made } = await changesOf(fs)
  t.equal(error, undefined)
  const [sync, ...removed] = ['sync /etc /', ...emptied.slice(0, -1)]
  t.strictSame(made, [sync, sync, ...probed, ...removed, sync, sync])
  t.strictSame(beside(), [names.lock])
  const { error: nothing, made: synced } = await changesOf(fs)
  t.match(nothing, { code: 'ENOENT', published: false, message: /has published nothing/ })
  t.strictSame(synced, [sync])
})
