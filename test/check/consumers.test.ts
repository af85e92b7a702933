/** `check --consumers`, and what `status` says of the same: real processes, on this machine's own procfs. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { type Consumer, podAndContainer } from '../../src/check/consumers.js'
import { holder } from './holders.js'
import { type CheckDocument, needsRoot, Scene } from './scene.js'

const looking = ['--consumers', '--pod-manifest-dir']

async function published(
  t: Test,
  directory: object = {},
): Promise<{ scene: Scene; publish: (text: string) => Promise<void> }> {
  const scene = new Scene(t, directory)
  mkdirSync(scene.path('manifests'))
  const publish = async (text: string): Promise<void> => {
    scene.put('serving-cert', { 'tls.crt': text })
    const { code, stderr } = await scene.run('sync')
    t.equal(code, 0, stderr)
  }
  await publish('1')
  return { scene, publish }
}

function manifest(name: string, path: string): string {
  const volumes = [{ name: 'certs', hostPath: { path } }]
  const spec = { containers: [{ name: 'web', image: 'web' }], volumes }
  return JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec })
}

await t.test('check warns of a process with old content open, and not of readers of the present content', async (t) => {
  const { scene, publish } = await published(t)
  const reader = await holder(t, `exec 3< ${scene.target}/tls.crt; hold`)
  const args = [...looking, scene.path('manifests')]
  const before = await scene.check(t, {}, args)
  t.match(before.one('consumers'), {
    status: 'OK',
    found: `nobody uses old content; of the current content, ${reader} (sh)`,
  })
  await publish('2')
  const after = await scene.check(t, {}, args)
  const finding = after.one('consumers')
  t.match(finding, { status: 'WARN', advice: /restart it, or make it open its files again/ })
  t.match(finding.found, /^process \d+ \(sh\) has old content open \(fd: .*tls\.crt \(deleted\)\)/)
  const { consumers } = after.document as CheckDocument & { consumers: readonly Consumer[] }
  t.match(consumers, [{ path: scene.target, what: 'fd', pid: reader, command: 'sh', retired: true, count: 1 }])

  const text = await scene.run('status')
  t.match(text.stdout, `${scene.target}: process ${reader} (sh) has old content open (fd: `)
  const json = JSON.parse((await scene.run('status', ['-o', 'json'])).stdout) as { consumers: readonly Consumer[] }
  t.match(json.consumers, [{ pid: reader, retired: true, description: /has old content open/ }])
  const without = await scene.check(t)
  t.same(without.all('consumers'), [], 'only where it is asked for')
  t.notOk('consumers' in without.document)
})

await t.test(
  'check warns of a mount of the directory itself, which never shows the next publication',
  { skip: needsRoot },
  async (t) => {
    for (const publish of ['exchange', 'symlink']) {
      const { scene } = await published(t, { publish })
      mkdirSync(scene.path('place'))
      const own = ['unshare', '--mount', '--propagation', 'private', '--']
      const pid = await holder(t, `mount --bind ${scene.target} ${scene.path('place')}; hold`, own)
      const checked = await scene.check(t, {}, [...looking, scene.path('manifests')])
      const mounted = `process ${pid} (sh) has it mounted by itself (mount: ${scene.path('place')}); it will not see what is published next`
      if (publish === 'exchange')
        t.match(checked.one('consumers'), { status: 'WARN', found: mounted, advice: /mount the parent/ })
      else t.match(checked.one('consumers'), { status: 'OK' }, 'the form that is made for this')
    }
  },
)

await t.test(
  "check warns of a static pod's volume of the directory itself, not of one above it; a torn manifest may name anything",
  async (t) => {
    const { scene } = await published(t)
    const put = (name: string, text: string) => writeFileSync(scene.path(`manifests/${name}.yaml`), text)
    put('direct', manifest('direct', `${scene.target}/`))
    put('below', manifest('below', `${scene.target}/tls.crt`))
    put('above', manifest('above', scene.parent))
    put('beside', manifest('beside', `${scene.target}-other`))
    put('torn', manifest('torn', scene.target).slice(0, -10))
    const checked = await scene.check(t, {}, [...looking, scene.path('manifests')])
    t.matchOnly(
      checked.all('consumers').map(({ found }) => found),
      [/^the static pod below mounts it by itself \(manifest: .*below\.yaml\)/, /^the static pod direct mounts/],
    )
    t.match(
      checked.all('consumers', 'this process').filter(({ found }) => found.includes('torn')),
      [{ status: 'WARN', found: /torn\.yaml cannot be read as a pod: .*; what they use counts as in use/ }],
    )
  },
)

await t.test('check says which processes it cannot inspect', { skip: needsRoot }, async (t) => {
  const { scene } = await published(t)
  const args = [...looking, scene.path('manifests')]
  const found = async (under: string[]) => {
    const checked = await scene.check(t, { under }, args)
    return checked.all('consumers', 'this process').map((finding) => `${finding.status} ${finding.found}`)
  }
  const container = await found(['unshare', '--pid', '--fork', '--mount-proc'])
  t.matchOnly(container, [/^WARN only the processes of this PID namespace are seen; what they use counts as in use$/])
  // As another user, who must be able to read the configuration.
  chmodSync(scene.root, 0o755)
  const hiding =
    'mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=1000 --regid=1000 --clear-groups -- "$@"'
  const other = await found(['setpriv', '--reuid=1000', '--regid=1000', '--clear-groups', '--'])
  t.match(other.join('\n'), /WARN \d+ processes may not be looked at \(for example \d+: EACCES\)/)
  const hidden = await found(['unshare', '--mount', '--propagation', 'private', '--', 'sh', '-c', hiding, 'sh'])
  t.match(hidden.join('\n'), /WARN \/proc hides the processes of other users \(hidepid\)/)
})

const uid = '1f3a5b6c-0d2e-4f60-8a1b-9c3d5e7f9012'
const id = 'a'.repeat(64)
const hash = '0123456789abcdef0123456789abcdef'

await t.test(
  'podAndContainer finds pod and container by the names that kubelet and the runtimes give their control groups',
  async (t) => {
    const both = { pod: uid, container: id }
    const slice = `kubepods-burstable-pod${uid.replaceAll('-', '_')}.slice`
    for (const [text, expected] of [
      [`0::/kubepods.slice/kubepods-burstable.slice/${slice}/cri-containerd-${id}.scope`, both],
      [`0::/kubepods.slice/${slice}/crio-${id}.scope`, both],
      [`11:memory:/kubepods/burstable/pod${uid}/${id}\n0::/`, both],
      [`0::/kubepods/burstable/pod${uid}/${id}`, both],
      // From within another cgroup namespace.
      [`0::/../../${slice}/cri-containerd-${id}.scope`, both],
      [`0::/kubepods/pod${hash}/${id}/init.scope`, { pod: hash, container: id }],
      [`0::/system.slice/docker-${id}.scope`, { container: id }],
      ['0::/system.slice/nginx.service', {}],
      ['0::/user.slice/podman.service', {}],
      ['', {}],
    ] as const) {
      t.strictSame(podAndContainer(`${text}\n`), expected, text)
    }
  },
)
