/** A target that the kernel does not rename, in a directory where it renames others: `check` and an adoption say so before `sync` fails. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import type { Test } from 'tap'
import t from 'tap'
import { needsRoot, Scene } from './scene.js'

/** The parent is an overlay; the target is in its lower layer, or was made in its upper one (`then`). */
function overlay(scene: Scene, options: string, then = 'true'): string[] {
  const layers = scene.path('layers')
  mkdirSync(`${scene.path('lower')}/certs`, { recursive: true })
  writeFileSync(`${scene.path('lower')}/certs/tls.crt`, 'from the image')
  mkdirSync(layers, { recursive: true })
  const script = `
    mount -t tmpfs tmpfs '${layers}' && mkdir '${layers}/upper' '${layers}/work' &&
    mount -t overlay overlay -o 'lowerdir=${scene.path('lower')},upperdir=${layers}/upper,workdir=${layers}/work${options}' '${scene.parent}' &&
    ${then} && exec "$@"`
  return ['unshare', '--mount', '--propagation', 'private', 'sh', '-ec', script, 'sh']
}

/** Kernels before 6.6 do not tell the layers of an overlay. */
const [major = 0, minor = 0] = execFileSync('uname', ['-r'], { encoding: 'utf8' }).split('.').map(Number)
const needsKernel = major > 6 || (major === 6 && minor >= 6) ? needsRoot : 'needs Linux 6.6'

/** `check` finds a fault just where `sync` fails, with the same words. */
async function agree(t: Test, scene: Scene, under: readonly string[], fault: RegExp | undefined): Promise<void> {
  const checked = await scene.check(t, { under })
  const { code, stdout, stderr } = await scene.run('sync', [], { under })
  t.equal(code, fault === undefined ? 0 : 1, stdout + stderr)
  t.equal(checked.one('exchange').status, fault === undefined ? 'OK' : 'FAULT', checked.one('exchange').found)
  if (fault !== undefined) t.match(checked.one('exchange').found, fault)
}

await t.test('check sees a target in the lower layer of an overlay', { skip: needsKernel }, async (t) => {
  const scene = new Scene(t, { adopt: 'replace' })
  const lower = /certs is in a lower layer of an overlay, which the kernel does not rename$/
  await agree(t, scene, overlay(scene, ',redirect_dir=off'), lower)
  await agree(t, scene, overlay(scene, ',redirect_dir=on'), undefined)
  const anew = `rm -r '${scene.target}' && mkdir '${scene.target}'`
  await agree(t, scene, overlay(scene, ',redirect_dir=off', anew), undefined)
  scene.configure([{ path: scene.target, publish: 'symlink', adopt: false, contents: [{ secret: 'serving-cert' }] }])
  const empty = `rm '${scene.target}/tls.crt'`
  await agree(t, scene, overlay(scene, ',redirect_dir=off', empty), undefined)
})

for (const [flag, words] of [
  ['i', 'immutable'],
  ['a', 'append-only'],
] as const) {
  for (const publish of ['exchange', 'symlink']) {
    await t.test(`check sees chattr +${flag} on the target of ${publish}`, { skip: needsRoot }, async (t) => {
      const scene = new Scene(t, { adopt: publish === 'exchange' ? 'replace' : false, publish })
      mkdirSync(scene.target)
      if (spawnSync('chattr', [`+${flag}`, scene.target]).status !== 0)
        return void t.pass('this file system has no flags')
      try {
        await agree(t, scene, ['env'], new RegExp(`certs is ${words} \\(chattr \\+${flag}\\)$`))
        if (publish !== 'exchange') return
        const adopted = await scene.run('adopt', [scene.target, '--dry-run'])
        t.match(adopted.stdout + adopted.stderr, new RegExp(`fileSystem +pending +.*is ${words}`))
      } finally {
        execFileSync('chattr', [`-${flag}`, scene.target])
      }
    })
  }
}
