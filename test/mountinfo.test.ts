/** Lines of /proc/self/mountinfo, as the kernel writes them (proc(5); fs/proc_namespace.c), for any names of mounts. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { mountAbove, mountDetails, mountPointsBelow, parseMount, rootMount, tableOf } from '../src/mountinfo.js'
import { holds } from './property.js'

/** As seq_escape() and mangle() do it. */
const escaped = (text: string) =>
  text.replace(/[ \t\n\\#]/g, (one) => `\\${one.charCodeAt(0).toString(8).padStart(3, '0')}`)

const name = fc.oneof(
  fc.array(fc.constantFrom('a', ' ', '-', ' - ', '\\', '\\040', '\n', '\t', '#', 'é', 'shared:1', '/'), {
    maxLength: 5,
  }),
  fc.string({ maxLength: 6 }).map((text) => [text.replaceAll('\0', '')]),
)
const path = name.map((parts) => `/${parts.join('')}`)
const source = name.map((parts) => parts.join('') || 'none')
const option = fc.constantFrom('rw', 'noatime', 'nobarrier', 'barrier=0', 'errors=remount-ro')
const optional = fc.constantFrom('shared:7', 'master:2', 'propagate_from:2', 'unbindable')
const mount = fc.record({
  id: fc.nat(),
  device: fc.tuple(fc.nat({ max: 999 }), fc.nat({ max: 999 })).map(([major, minor]) => `${major}:${minor}`),
  root: path,
  mountPoint: path,
  options: fc.array(option, { minLength: 1, maxLength: 3 }),
  optional: fc.uniqueArray(optional),
  type: fc.constantFrom('ext4', 'fuse.sshfs', 'tmpfs'),
  source: fc.oneof(source, fc.constantFrom('-', '/dev/sda1')),
  superOptions: fc.array(option, { minLength: 1, maxLength: 3 }),
})

await t.test('parseMount reads every field of a mount as the kernel wrote it', async (t) => {
  const property = fc.property(mount, (one) => {
    const { id, device, root, mountPoint, options, optional, type, source, superOptions } = one
    const before = [id, 1, device, escaped(root), escaped(mountPoint), options.join(), ...optional].join(' ')
    assert.deepEqual(parseMount(`${before} - ${type} ${escaped(source)} ${superOptions.join()}`), {
      id,
      root,
      mountPoint,
      device,
      type,
      source,
      options: [...options, ...superOptions],
      receives: optional.some((field) => field === 'shared:7' || field === 'master:2'),
    })
  })
  await holds(t, 'round trip', property, { runs: 500 })
})

await t.test("this process's own mounts", async (t) => {
  const mounted = () => readFileSync('/proc/self/mountinfo', 'utf8').trim().split('\n')
  const found = mounted().map((line) => ({ line, details: mountDetails(Number(line.split(' ')[0])) }))
  // Tests that run beside this one mount and unmount.
  const after = mounted()
  const stayed = found.filter(({ line }) => after.includes(line))
  t.ok(stayed.length > 0)
  for (const { line, details } of stayed) {
    t.same(details, parseMount(line))
    t.not(parseMount(line).type, '')
  }
  t.equal(rootMount()?.mountPoint, '/')
  t.equal(mountDetails(2 ** 40), undefined)
})

await t.test('mounts that have not changed are not read anew, those that have are', async (t) => {
  const [one, other] = ['1 1 0:1 / /a rw - tmpfs none rw\n', '1 1 0:1 / /b rw - tmpfs none rw\n']
  const first = tableOf(one)
  t.same(first, [parseMount(one.trim())])
  t.equal(tableOf(one), first)
  t.same(
    tableOf(one + other),
    [one, other].map((line) => parseMount(line.trim())),
  )
  t.same(tableOf(''), [])
  t.same(tableOf(one), first)
})

await t.test('the mount that a path is on, and those below it, by names alone', async (t) => {
  const table = ['/', '/srv', '/srv/data', '/srv/data/x', '/srvx', '/srv/data'].map((mountPoint, index) =>
    parseMount(`${index} 1 0:1 / ${mountPoint} rw - tmpfs none rw`),
  )
  const above: Record<string, number> = {
    '/': 0,
    '/s': 0,
    '/srv': 1,
    '/srv/dat': 1,
    '/srv/data': 5,
    '/srv/data/y': 5,
    '/srv/data/x/y': 3,
    '/srvx/a': 4,
  }
  for (const [path, id] of Object.entries(above)) t.equal(mountAbove(path, table)?.id, id, path)
  t.equal(mountAbove('/a', []), undefined)
  t.same(mountPointsBelow('/', table), ['/srv', '/srv/data', '/srv/data/x', '/srvx', '/srv/data'])
  t.same(mountPointsBelow('/srv', table), ['/srv/data', '/srv/data/x', '/srv/data'])
  t.same(mountPointsBelow('/srv/data/x', table), [])
})
