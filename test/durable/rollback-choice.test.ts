/** Which earlier content comes back, and why none does: each answer with its reason, and nothing is changed where there is none. */
import t from 'tap'
import { recordObjects } from '../../src/durable/record/record-files.js'
import { rollBack } from '../../src/durable/operator/rollback.js'
import type { HistoryLimits, RecordedObject } from '../../src/durable/types.js'
import { forever, objectOf, scene as history, without } from './history-scene.js'
import { beside, intercepted } from './intercepted.js'
import { answer, pin, scene } from './rollback-scene.js'
import { contents } from './scratch.js'

await t.test('of nothing, of one content, and of the content that is there already', async (t) => {
  const { target, replace, back } = scene(t)
  t.equal(await back(), `ENOENT: holdfast has published nothing at ${target}`)
  const bare = history(t)
  await bare.replace('1', { history: forever(0) })
  t.equal(await answer(rollBack(bare.fs, bare.target, { pin })), `ENOENT: no earlier content of ${bare.target} is kept`)
  await replace('1')
  t.equal(await back(), `ENOENT: no earlier content of ${target} is kept`)
  await replace('2')
  await replace('1')
  t.equal(await back({ to: 9 }), `ENOENT: ${target} has no earlier content 9; there are 2, 1`)
  t.equal(await back({ to: 3 }), `ENOENT: ${target} holds this content already; there are 2, 1`)
  t.equal(await back({ to: 1 }), `ENOENT: ${target} holds this content already; there are 2, 1`, 'the same once more')
  await replace('2', { history: without('1', forever(3)) })
  t.equal(await back(), `ENOENT: ${target} holds this content already; there are 2`, 'and no other one is kept')
})

await t.test('a rollback of edited content goes back to the newest published one', async (t) => {
  const { target, replace, back, wouldBack, edit } = scene(t)
  for (const text of ['1', '2']) await replace(text)
  edit()
  t.equal(await wouldBack(), 'may come back')
  t.equal(await back({ to: 2 }), `ENOENT: ${target} has no earlier content 2; there are 1`, 'it is kept nowhere')
  t.equal(await back(), 1)
  t.strictSame(contents(target), { 'tls.crt': '1', 'sub/tls.key': '1' })
})

await t.test('a rollback publishes present content that may not be durable again by its number', async (t) => {
  const { target, replace, back, unproven } = scene(t)
  for (const text of ['1', '2']) await replace(text)
  await t.rejects(replace('1', {}, unproven()), { code: 'EIO', published: true })
  t.equal(await back({ to: 1 }), 1)
  t.equal(await back({ to: 1 }), `ENOENT: ${target} holds this content already; there are 2, 1`)
})

await t.test('after a rollback that is not known to be durable', async (t) => {
  const begun = async () => {
    const one = scene(t)
    for (const text of ['1', '2']) await one.replace(text)
    t.match(await one.back({}, one.unproven()), /^EIO: /)
    return one
  }
  const edited = await begun()
  edited.edit()
  t.equal(await edited.back(), 2, 'and edited since: the newest')
  t.equal(await (await begun()).back({ to: 2 }), 2, 'or by its number')
  const gone = await begun()
  const again = (history: HistoryLimits) => t.rejects(gone.replace('1', { history }, gone.unproven()))
  await again(forever(1))
  t.equal(
    await gone.back(),
    `ENOENT: ${gone.target} was rolled back already, and no copy of that content is kept; there are 2`,
  )
  gone.fs.clock += 2
  await again({ keep: 1, maxAge: 1 })
  t.equal(await gone.back(), `ENOENT: no earlier content of ${gone.target} is kept`)
})

await t.test('another object is one of the same kind, namespace and name with another uid', async (t) => {
  const { target, fs, replace, wouldBack } = scene(t)
  const web = objectOf('web')
  await replace('1', { objects: [web] })
  await replace('2', { objects: [objectOf('another')] })
  const { digest } = await replace('3', { objects: [] })
  const may = async (...objects: RecordedObject[]): Promise<number | string> => {
    t.ok(await recordObjects(fs, target, digest, objects))
    return wouldBack({ to: 1 })
  }
  const uid = 'of the one that came later'
  // A new record adds its objects to those before.
  t.equal(await may(), 'may come back')
  t.equal(await may({ ...web, kind: 'ConfigMap', uid }), 'may come back')
  t.equal(await may({ ...web, namespace: 'production', uid }), 'may come back')
  t.equal(await may(objectOf('another'), { ...web, name: 'web2', uid }), 'may come back')
  t.equal(await may(web), 'may come back')
  const refused = `ESTALE: the content 1 of ${target} was made from another Secret demo/web, which was deleted since`
  t.equal(await may({ ...web, uid }), refused)
  t.equal(await wouldBack({ to: 1, force: true }), 'may come back')
})

await t.test('rollback reports a publication meanwhile first, with any objects', async (t) => {
  const { target, fs, replace, back } = scene(t)
  const web = objectOf('web')
  await replace('1', { objects: [web] })
  await replace('2', { objects: [] })
  let begun = 0
  const isNow = (call: string) => (call === 'random' || begun > 0) && ++begun === 2
  const another = beside(fs, isNow, () => replace('3', { objects: [{ ...web, uid: 'of the one that came later' }] }))
  t.equal(
    await back({}, another),
    `ESTALE: another process has published ${target} meanwhile, or removed the earlier content`,
  )
})

await t.test('rollback refuses an expired pin before it reads anything', async (t) => {
  const { target, fs, replace, back, wouldBack } = scene(t)
  for (const text of ['1', '2']) await replace(text, { objects: [] })
  const opened: unknown[] = []
  const { fs: watched } = intercepted((call, [, name]) => {
    if (call === 'openDirectory' && String(name).startsWith('.')) opened.push(name)
  }, fs)
  const newer = { reason: '', until: 'newer' } as const
  t.equal(
    await back({ pin: newer }, watched),
    `ENODATA: what ${target} holds, and all before it, was made from no object: nothing could be newer`,
  )
  t.strictSame(opened, [])
  t.equal(await wouldBack({ pin: { reason: '', until: fs.clock + 1 } }), 'may come back')
  await replace('3')
  t.equal(await wouldBack({ pin: newer }), 'may come back')
})
