/** A rollback that is killed, or that fails, at each of its calls. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { inParallel } from '../../src/parallel.js'
import { NodeFileSystem } from '../../src/durable/posix/file-system.js'
import { readRecord, readPublication } from '../../src/durable/look/inspect.js'
import { listKept } from '../../src/durable/look/list-kept.js'
import { failure, intercepted, Killed } from './intercepted.js'
import { byItself, scene } from './rollback-story.js'
import { kept } from './scratch.js'

/** The same disk, by another boot. */
class Rebooted extends NodeFileSystem {
  override bootId(): Promise<string> {
    return Promise.resolve('another boot')
  }
}

/** Since when a target is pinned, by each of those who tell. */
async function pinsAt(fs: NodeFileSystem, root: string, target: string): Promise<(number | undefined)[]> {
  const [kept] = await listKept(fs, root)
  const said = [
    await readPublication(fs, target).then((found) => found?.pin),
    (await readRecord(fs, target))?.hold,
    kept?.pin,
  ]
  return said.map((pin) => pin?.since)
}

const rule = 'killed or failed at any call: whole, pinned if it was acknowledged, and not if nothing was rolled back'
for (const [what, drifts, next] of [
  ['', false, new NodeFileSystem()],
  [', of what has drifted', true, new NodeFileSystem()],
  [', after a reboot', false, new Rebooted()],
  [', of what has drifted, after a reboot', true, new Rebooted()],
] as const) {
  await t.test(`${rule}${what}`, async (t) => {
    const trial = async (stop: (call: string, index: number) => void) => {
      const one = scene(t)
      await one.replace('1')
      await one.replace('2')
      if (drifts) writeFileSync(join(one.target, 'tls.crt'), 'drift')
      const by = intercepted((call, _, index) => stop(call, index), one.fs).fs
      const answer = await one.back({}, by).catch(() => undefined)
      return { ...one, answer }
    }
    const calls: string[] = []
    await trial((call) => calls.push(call))
    const wrong: string[] = []
    const stopped = async (n: number, kill: boolean): Promise<void> => {
      const { root, target, replace, holds, past, answer } = await trial((call, index) => {
        if (kill && index >= n) throw new Killed()
        if (!kill && index === n) throw failure('EIO', call)
      })
      const when = `${kill ? 'killed' : 'failed'} at call ${n}, ${calls[n - 1] ?? ''}`
      const found = holds()
      const was = drifts ? 'drift' : '2'
      if (found !== '1' && found !== was) wrong.push(`${when}: it holds ${String(found)}`)
      if (answer && found !== '1') wrong.push(`${when}: says that it is rolled back`)
      const pins = await pinsAt(next, root, target)
      if (new Set(pins).size > 1)
        wrong.push(`${when}: its pin is since ${pins.map((since) => since ?? 'never').join(', ')}`)
      const [, ...before] = await past()
      if (before.some((line) => !line.endsWith('whole'))) wrong.push(`${when}: ${before.join()}`)
      const refused = await replace('3', byItself('2'), next).then(
        () => false,
        (error: unknown) => (error as { reason?: string }).reason === 'RolledBack',
      )
      if (answer && !refused) wrong.push(`${when}: it is undone`)
      if (refused && found !== '1') wrong.push(`${when}: pinned, and nothing was rolled back`)
      await replace('4', {}, next)
      const left = kept(root)
        .filter((name) => name !== 'generation')
        .join()
      if (left !== 'lock,record') wrong.push(`${when}: the next run leaves ${left}`)
      if ((await past()).slice(1).some((line) => !line.endsWith('whole')))
        wrong.push(`${when}: ${(await past()).join()}`)
    }
    const cases = calls.flatMap((call, index) => [
      ...(/^(createDirectory|write|rename|remove)/.test(call) ? [{ n: index + 1, kill: true }] : []),
      ...(/^(read$|startWriteOut|sync|rename)/.test(call) ? [{ n: index + 1, kill: false }] : []),
    ])
    t.ok(cases.length > 20, `${cases.length} cases`)
    await inParallel(cases, 4, ({ n, kill }) => stopped(n, kill))
    t.strictSame(wrong, [])
  })
}
