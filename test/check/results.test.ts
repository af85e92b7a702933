/** Results for facts that a test's machine cannot have at will: kernels, disks, labels, mounts in containers, clocks. */
import t from 'tap'
import { checkClock } from '../../src/check/certificates.js'
import { listed } from '../../src/message-text.js'
import { faultOf, inBytes, type Finding } from '../../src/check/findings.js'
import { checkKernel } from '../../src/check/this-process.js'
import { checkLabel } from '../../src/check/attributes.js'
import { checkFlushes, checkMount, checkSpace } from '../../src/check/mount.js'
import { parseMount } from '../../src/mountinfo.js'
import { painter } from '../../src/cli/output/colour.js'
import { findingsText } from '../../src/cli/commands/check.js'
import { DurableWriteError } from '../../src/durable/errors.js'

await t.test('checkKernel warns of affected kernels for a target on btrfs', async (t) => {
  const fixed = ['6.1.161', '6.1.200-1.el9', '6.6.121', '6.12.66', '6.18.6', '6.18.44-fc-v669', '6.19.0', '7.0.1']
  const affected = ['6.1.160', '6.6.120-generic', '6.12.65', '6.12', '6.18.5', '6.17.13', '5.15.200', '5.10.0-28-amd64']
  for (const release of fixed) t.match(checkKernel(release, ['/x']), { status: 'OK', found: /has the fix/ }, release)
  for (const release of affected) {
    t.match(checkKernel(release, ['/x']), { status: 'WARN', found: /CVE-2025-71183/, advice: /6\.12\.66/ }, release)
  }
  t.equal(checkKernel('next', ['/x']).status, 'WARN')
  t.match(checkKernel('6.1.0', []), { status: 'OK', found: 'Linux 6.1.0' }, 'no btrfs, no matter')
})

const line = (text: string) => parseMount(text)
const ext4 = line('36 35 8:1 / /mnt rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro')

await t.test('checkFlushes judges disks and mount options', async (t) => {
  const disk = (cache: string | undefined) => ({ name: 'sda', cache, backingFile: undefined })
  t.match(checkFlushes(ext4, disk('write back')), {
    status: 'OK',
    found: 'the kernel sends them to sda (write back cache)',
  })
  t.match(checkFlushes(ext4, disk('write through')), {
    status: 'OK',
    found: /no cache to flush \(write through\)/,
  })
  t.equal(checkFlushes(ext4, disk(undefined)), undefined)
  t.equal(checkFlushes(ext4, undefined), undefined)
  for (const option of ['nobarrier', 'barrier=0']) {
    const without = { ...ext4, options: [...ext4.options, option] }
    t.match(checkFlushes(without, disk('write back')), {
      status: 'WARN',
      advice: `mount it without ${option}`,
    })
  }
  for (const option of ['volatile', 'fsync=volatile']) {
    const overlay = { ...ext4, type: 'overlay', options: ['rw', option] }
    t.match(checkFlushes(overlay, undefined), { status: 'WARN', found: /the kernel never syncs it/ }, option)
  }
})

await t.test('checkMount judges mounts in a container', async (t) => {
  const root = line('1 0 0:30 / / rw - overlay overlay rw,lowerdir=/a')
  const host = line('36 1 8:1 /etc/kubernetes /etc/kubernetes rw - ext4 /dev/sda1 rw')
  const path = '/etc/kubernetes/certs'
  t.match(checkMount(root, path, root), {
    status: 'WARN',
    found: /the container's own layer/,
    advice: 'no mount of the node is there: add a hostPath volume for /etc/kubernetes',
  })
  t.match(checkMount({ ...root, options: ['ro'] }, path, root), { status: 'FAULT', found: /own layer.*read-only$/ })
  t.match(checkMount(host, path, root), { status: 'WARN', advice: /mountPropagation: HostToContainer/ })
  t.equal(checkMount({ ...host, receives: true }, path, root).status, 'OK')
  t.equal(checkMount(host, path, ext4).status, 'OK', 'not in a container')
  t.match(checkMount({ ...host, options: ['ro'] }, path, ext4), { status: 'FAULT', found: /read-only$/ })
})

await t.test('checkLabel judges SELinux labels', async (t) => {
  const bytes = (text: string) => Buffer.from(`${text}\0`)
  const module = { context: 'system_u:system_r:container_t:s0:c1,c2' }
  const [cert, etc] = [bytes('system_u:object_r:cert_t:s0'), bytes('system_u:object_r:etc_t:s0')]
  t.match(checkLabel(module, { target: cert, parent: etc }), {
    status: 'OK',
    found: /^system_u:object_r:cert_t:s0, the target's, kept/,
  })
  t.match(checkLabel(module, { target: undefined, parent: etc }), {
    status: 'OK',
    found: /etc_t:s0, inherited from the parent; this process: .*container_t/,
  })
  t.match(checkLabel(module, { target: undefined, parent: undefined }), {
    status: 'WARN',
    advice: /restorecon/,
  })
  const unlabeled = bytes('system_u:object_r:unlabeled_t:s0')
  t.equal(checkLabel(module, { target: unlabeled, parent: etc }).status, 'WARN')
})

await t.test('checkSpace judges free bytes and inodes', async (t) => {
  const GiB = 1024 ** 3
  const statuses = (free: number, inodes: number | undefined, used: number) =>
    checkSpace({ bytes: free, inodes }, { bytes: used, inodes: 3 }).map(({ status }) => status)
  t.same(statuses(GiB, undefined, 1024), ['OK', 'OK'])
  t.same(statuses(GiB, 5, GiB / 2), ['OK', 'WARN'])
  t.same(statuses(GiB, 2, GiB / 2 + 1), ['WARN', 'FAULT'])
  t.same(statuses(GiB, 1000, GiB + 1), ['FAULT', 'OK'])
  t.same(statuses(1024, 1000, 10), ['WARN', 'OK'], 'low, whatever the target takes')
  t.same([0, 7, 1024, 1536, 20 * GiB].map(inBytes), ['0 bytes', '7 bytes', '1.0 KiB', '1.5 KiB', '20 GiB'])
})

await t.test('checkClock judges certificates by the clock', async (t) => {
  const day = 86_400_000
  const now = new Date('2026-06-01T12:00:00Z')
  const valid = (name: string, from: number, to: number) => ({
    name,
    from: new Date(now.getTime() + from * day),
    to: new Date(now.getTime() + to * day),
  })
  t.equal(checkClock('c', [], now), undefined)
  t.match(checkClock('c', [valid('a', -1, 9), valid('b', -2, 5)], now), {
    status: 'OK',
    found: '2 certificates, valid now; the first to expire is b, at 2026-06-06T12:00:00Z',
  })
  t.match(checkClock('c', [valid('a', -1, 9), valid('b', 1, 5)], now), {
    status: 'WARN',
    found: 'b is not valid before 2026-06-02T12:00:00Z; the clock says 2026-06-01T12:00:00Z',
    advice: /set the clock/,
  })
  t.match(checkClock('c', [valid('a', -1, 0), valid('b', -1, 5)], now), {
    status: 'WARN',
    found: /^a expired at/,
  })
})

await t.test('listed joins names in a row', async (t) => {
  t.same(
    [[], ['a'], ['a', 'b'], ['a', 'b', 'c']].map((names) => listed(names)),
    ['', 'a', 'a and b', 'a, b and c'],
  )
  t.equal(listed(['a', 'b', 'c', 'd'], 2), 'a, b and 2 more')
})

await t.test('faultOf shows a refusal with its finding and its advice', async (t) => {
  const details = { code: 'EBUSY', syscall: 'lstat', path: '/x', state: 'nothing was changed', advice: 'do this' }
  const refusal = new DurableWriteError('/x is bad; it is so', details)
  t.match(faultOf('target', refusal), { status: 'FAULT', found: '/x is bad; it is so', advice: 'do this' })
  t.throws(() => faultOf('target', new TypeError('a defect')), { message: 'a defect' })
})

await t.test('checkText prints the table', async (t) => {
  const findings: Finding[] = [
    { subject: '/a', check: 'mount', status: 'OK', found: '/dev/sda1 on /', advice: null },
    { subject: '/a', check: 'exchange', status: 'FAULT', found: 'no', advice: 'move' },
    { subject: 'API server', check: 'node name', status: 'WARN', found: 'is not known', advice: 'say it' },
  ]
  const text = findingsText(findings, painter(false))
  t.equal(
    text,
    `SUBJECT     CHECK      STATUS  FOUND
/a          mount      OK      /dev/sda1 on /
            exchange   FAULT   no
                               -> move
API server  node name  WARN    is not known
                               -> say it

this node is not fit: 1 fault, 1 warning
`,
  )
  const found = 'it was replaced by another program, and what it holds differs from its record'
  const long = [{ ...findings[1], subject: '/var/lib/kubernetes/pki/serving-certificates', found }] as Finding[]
  const lines = findingsText(long, painter(false), 80).split('\n')
  t.ok(
    lines.every((line) => line.length <= 80),
    'it fits the terminal',
  )
  t.match(lines[1], /^\/var\/lib\/kub\.\.\.-certificates {2}exchange {2}FAULT/)
  t.equal(
    lines
      .slice(1, 5)
      .map((line) => line.slice(48))
      .join(' '),
    `${found} -> move`,
    'between words',
  )
  t.match(findingsText(findings.slice(0, 1), painter(false)), /\n\nthis node is fit: 0 faults, 0 warnings\n$/)
  const coloured = findingsText(findings, painter(true))
  t.match(coloured, /\u001b\[31mFAULT\u001b\[0m {3}no\n/)
  t.equal(coloured.replace(/\u001b\[\d+m/g, ''), text, 'colour moves no column')
})
