import t from 'tap'
import { podAndContainer } from '../../src/check/cgroup.js'

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
