/** The answers that end the wait of a single pass, against a model cluster. */
import t from 'tap'
import { firstAnswers } from '../../../src/objects/first-answers.js'
import { reference } from '../recorder.js'
import { refuse } from '../../kubernetes/connection/api-server.js'
import { startWatching } from './watching.js'

const cert = reference('serving-cert')

void t.test('firstAnswers waits for an API server that denies everything while it starts', async (t) => {
  let denied = 0
  const { source } = await startWatching(t, {}, (c) => {
    c.put('serving-cert', 'one')
    c.intercept = (_, reply) => {
      denied += 1
      if (denied > 2) return false
      refuse(reply, 403, 'RBAC: not yet')
      return true
    }
  })
  source.follow([{ reference: cert }])
  t.strictSame(await firstAnswers(source, () => [cert], { timeout: 60_000, denialGrace: 50_000 }), [])
  t.equal(source.latest(cert)?.state, 'present')
  t.ok(denied > 2)
})

void t.test('firstAnswers takes a lasting denial for an answer', async (t) => {
  const { source } = await startWatching(t, {}, (c) => {
    c.intercept = (_, reply) => {
      refuse(reply, 403, 'forbidden')
      return true
    }
  })
  source.follow([{ reference: cert }])
  const startedAt = performance.now()
  t.strictSame(await firstAnswers(source, () => [cert], { timeout: 60_000, denialGrace: 300 }), [])
  t.ok(performance.now() - startedAt >= 300)
  t.match(source.latest(cert), { state: 'unknown', reason: 'AccessDenied' })
})

void t.test('firstAnswers takes a failing server for no answer', async (t) => {
  let failures = 0
  const { recorder, source } = await startWatching(t, {}, (c) => {
    c.put('serving-cert', 'one')
    c.intercept = ({ name }, reply) => {
      if (name !== 'serving-cert') return false
      failures += 1
      return refuse(reply, 500, 'etcdserver: request timed out')
    }
  })
  const other = reference('other')
  source.follow([{ reference: cert }, { reference: other }])
  await recorder.until('it was asked again', () => failures > 1)
  t.match(source.latest(cert), { state: 'unknown', reason: 'SourceUnavailable', message: /HTTP 500/ })
  t.strictSame(await firstAnswers(source, () => [other], { timeout: 60_000 }), [])
  t.strictSame(await firstAnswers(source, () => [cert, other], { timeout: 100 }), [cert])
})
