/** A pod without the hostPath volume for its target: the root of a container, of overlayfs, in a mount namespace. */
import { mkdirSync } from 'node:fs'
import t from 'tap'
import { needsRoot, Scene } from './scene.js'

/** The words that run the program in a container's root over the root of this machine. Its coverage would be lost with the container. */
function container(scene: Scene, options: 'ro' | 'rw', also = 'true'): string[] {
  const box = scene.path('box')
  mkdirSync(box, { recursive: true })
  const script = `
    mount -t tmpfs tmpfs '${box}' && mkdir '${box}/upper' '${box}/work' '${box}/root' &&
    mount -t overlay overlay -o '${options},lowerdir=/,upperdir=${box}/upper,workdir=${box}/work' '${box}/root' &&
    mount --rbind /proc '${box}/root/proc' && mount --rbind /dev '${box}/root/dev' && ${also} &&
    unset NODE_V8_COVERAGE && exec chroot '${box}/root' "$@"`
  return ['unshare', '--mount', '--propagation', 'private', 'sh', '-ec', script, 'sh']
}

for (const options of ['ro', 'rw'] as const) {
  await t.test(`a forgotten hostPath volume is named, on a root that is ${options}`, { skip: needsRoot }, async (t) => {
    const scene = new Scene(t)
    const words = `no mount of the node is there: add a hostPath volume for ${scene.parent}`
    const under = container(scene, options)
    const { code, stdout, stderr } = await scene.run('sync', [], { under })
    t.equal(code, options === 'ro' ? 1 : 0, stdout + stderr)
    t.match(stdout + stderr, words)
    t.notMatch(stdout + stderr, /kernel log/)
    const checked = await scene.check(t, { under })
    t.match(checked.one('mount'), { status: options === 'ro' ? 'FAULT' : 'WARN', advice: words })
    t.notMatch(JSON.stringify(checked.document), /kernel log/)
  })
}

await t.test('a volume of the node that is read-only is no forgotten one', { skip: needsRoot }, async (t) => {
  const scene = new Scene(t)
  const parent = `${scene.path('box')}/root${scene.parent}`
  const under = container(scene, 'rw', `mount -t tmpfs -o ro tmpfs '${parent}'`)
  const { code, stdout, stderr } = await scene.run('sync', [], { under })
  t.equal(code, 1, stdout + stderr)
  t.match(
    stdout + stderr,
    /EROFS.*: mount it read-write; where nobody mounted it so, check the kernel log for a disk error/,
  )
  t.notMatch(stdout + stderr, /hostPath/)
})
