/** The bytes of an earlier content: whole, or not at all, with the reason; and the errors for those. */
import t from 'tap'
import { damaged, noneEarlier, readEarlier } from '../../../src/durable/look/earlier-content.js'
import { TargetSnapshot } from '../../../src/durable/look/snapshot.js'
import { readTree } from '../../../src/durable/path/tree.js'
import type { Generation } from '../../../src/durable/types.js'
import { codeOf } from '../../../src/errors.js'
import { ModelDisk, ModelError } from '../../crash/model/model-disk.js'
import { ModelProcess } from '../../crash/model/model-process.js'
import { makeDirectory, makeEntry } from '../../crash/model/scenario.js'

/** An earlier content beside a target, on a disk that has labels; `read` answers the result, its reads, and the descriptors still open. */
async function kept(before?: (call: string, name: string) => void) {
  const disk = new ModelDisk()
  for (const path of ['/etc', '/etc/kept', '/etc/kept/certs', '/etc/kept/certs/sub'])
    makeDirectory(disk, path, 0o755, 'system_u:object_r:cert_t:s0')
  makeEntry(disk, '/etc/kept/certs/a', 'file', 0o640, 'one', 'system_u:object_r:cert_t:s0')
  makeEntry(disk, '/etc/kept/certs/link', 'symlink', 0o777, 'a')
  makeEntry(disk, '/etc/kept/certs/sub/b', 'file', 0o600, 'two')
  const fs = new ModelProcess(disk)
  const parent = await fs.openPath('/etc')
  const root = await fs.openPath('/etc/kept/certs')
  const { digest } = await readTree(fs, root, false)
  await fs.close(root)
  const calls: string[] = []
  fs.before = (call, name) => {
    calls.push(call)
    before?.(call, name)
  }
  const read = async (wanted = digest, name = 'kept') => {
    calls.length = 0
    const found = await readEarlier(new TargetSnapshot(fs, '/etc/certs', parent, 'certs', []), {
      name,
      digest: wanted,
    } as Generation).catch((error: unknown) => [error])
    return { found, reads: calls.filter((call) => call === 'read').length, open: fs.descriptors - 1 }
  }
  return read
}

await t.test(
  'readEarlier reads each file by its path, without labels, and without links among the files',
  async (t) => {
    const { found, open } = await (await kept())()
    if (found === undefined || found instanceof Error || Array.isArray(found)) throw new Error('it was not read')
    const texts = [...found.files].map(([path, bytes]) => [path, Buffer.from(bytes).toString('utf8')])
    t.strictSame(texts, [
      ['a', 'one'],
      ['sub/b', 'two'],
    ])
    t.strictSame(
      found.entries.map(({ path, mode, label }) => [path, mode.toString(8), label]),
      [
        ['', '755', undefined],
        ['a', '640', undefined],
        ['link', '777', undefined],
        ['sub', '755', undefined],
        ['sub/b', '600', undefined],
      ],
    )
    t.equal(open, 0)
  },
)

await t.test('readEarlier compares a changed content, and does not read it into memory', async (t) => {
  t.strictSame(await (await kept())('sha256:0'), { found: undefined, reads: 2, open: 0 })
})

await t.test('what the system refuses is the answer, a defect is thrown, and nothing stays open', async (t) => {
  const read = await kept()
  const none = await read(undefined, 'gone')
  t.match(none, { found: { code: 'ENOENT' }, open: 0 })
  for (const call of ['openDirectory', 'openFile', 'read', 'attributes', 'entries']) {
    for (const nth of [1, 2, 3, 4]) {
      let left = nth
      const failing = await kept((name) => {
        if (name === call && --left === 0) throw new ModelError('EIO', name, '')
      })
      const { found, open } = await failing()
      t.strictSame([codeOf(found), open], left > 0 ? [undefined, 0] : ['EIO', 0], `${call} ${nth}`)
    }
  }
  const defect = new RangeError('a defect')
  const broken = await kept((name) => {
    if (name === 'read') throw defect
  })
  const { found, open } = await broken()
  t.strictSame([found, open], [[defect], 0])
})

await t.test('a damaged one is named with where it is, and why', async (t) => {
  const generation = { sequence: 3, name: '.holdfast-x.3-y' } as Generation
  const advice = 'choose another one (holdfast history /etc/certs)'
  const about = { code: 'EBADMSG', syscall: 'read', path: '/etc/.holdfast-x.3-y', advice, published: false }
  const problem = 'the content 3 of /etc/certs is damaged: it is not what was published'
  t.match(damaged('/etc/certs', generation), { ...about, problem, cause: undefined })
  const cause = new ModelError('EIO', 'read', 'a')
  const why = `the content 3 of /etc/certs is damaged: it cannot be read: ${cause.message}`
  t.match(damaged('/etc/certs', generation, cause), { ...about, problem: why, cause })
  t.match(noneEarlier('/etc/certs', 'there is none'), { code: 'ENOENT', path: '/etc/certs', problem: 'there is none' })
})
