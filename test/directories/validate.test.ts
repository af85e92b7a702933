/** Which private keys among the files of a directory do not belong to the certificates beside them. */
import t from 'tap'
import { keyPairProblemAmong } from '../../src/directories/validate.js'
import { makeCertificate, makeKey } from './make-certificates.js'

const key = makeKey()
const certificate = makeCertificate(key)
const otherKey = makeKey()

const among = (files: Record<string, string | Uint8Array>) =>
  keyPairProblemAmong({
    paths: Object.keys(files),
    read: (path) => Promise.resolve(Buffer.from(files[path] ?? '')),
  })

await t.test('keyPairProblemAmong finds a key that belongs to another certificate', async (t) => {
  const pair = { 'sub/tls.crt': certificate, 'sub/tls.key': key }
  t.equal(await among(pair), undefined)
  t.equal(
    await among({ ...pair, 'tls.crt': certificate, 'tls.key': otherKey }),
    'tls.key does not belong to the first certificate of tls.crt',
  )
})

await t.test('a file that is no pair, or does not parse, is no problem of a pair', async (t) => {
  t.equal(await among({ 'tls.crt': certificate, 'other.key': otherKey, 'sub/tls.key': otherKey }), undefined)
  t.equal(await among({ 'tls.crt': 'no certificate', 'tls.key': otherKey }), undefined)
  t.equal(await among({ 'tls.crt': certificate, 'tls.key': 'no key' }), undefined)
  t.equal(
    await among({ '.key': otherKey, '.crt': certificate }),
    '.key does not belong to the first certificate of .crt',
  )
})
