/** What a server, or a proxy in its place, may answer to the read of an object: an error, and never an object or an absence that it is not. */
import t from 'tap'
import { answers } from '../../fuzz/targets/answers.js'

const object = (more: object = {}): string => {
  const metadata = { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1', ...more }
  return JSON.stringify({ kind: 'Secret', metadata, data: { k: 'dg==' } })
}
const missing = (details: object): string => JSON.stringify({ kind: 'Status', reason: 'NotFound', details })

/** A whole answer with a length. */
const whole = (status: string, body: string, ...headers: readonly string[]): string =>
  [`HTTP/1.1 ${status}`, ...headers, `Content-Length: ${Buffer.byteLength(body)}`, '', body].join('\r\n')
/** An answer as it comes, whatever its head says. */
const raw = (...lines: readonly string[]): string => lines.join('\r\n')
const chunked = 'Transfer-Encoding: chunked'
const json = 'Content-Type: application/json'
const secret = object()

/** undefined: an error. `unknown` is an object that the API server has and that cannot be used: neither there nor gone. */
const cases: readonly (readonly [of: string, answer: string, reads?: string])[] = [
  ['the object', whole('200 OK', secret, json), 'present'],
  [
    'the object in chunks',
    raw('HTTP/1.1 200 OK', chunked, '', secret.length.toString(16), secret, '0', '', ''),
    'present',
  ],
  ['a NotFound of the object', whole('404 Not Found', missing({ name: 'a', kind: 'secrets' }), json), 'absent'],
  ['nothing', ''],
  ['a byte', 'H'],
  ['no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
  ['a status line alone', 'HTTP/1.1 200 OK\r\n'],
  ['a head without an end', raw('HTTP/1.1 200 OK', json)],
  ['another version of HTTP', whole('200 OK', secret).replace('HTTP/1.1', 'HTTP/9.9')],
  ['a status of two digits', whole('20 OK', secret)],
  ['a status of four digits', whole('2000 OK', secret)],
  ['a status that is none', whole('abc OK', secret)],
  ['a header without a colon', whole('200 OK', secret, 'no colon')],
  ['a header with a control character', whole('200 OK', secret, 'X-A: \u0001\u0000')],
  ['a header of 64 KiB', whole('200 OK', secret, `X-A: ${'a'.repeat(65_536)}`)],
  ['ten thousand headers', whole('200 OK', secret, ...Array.from({ length: 10_000 }, (_, index) => `X-${index}: a`))],
  ['two lengths', whole('200 OK', secret, 'Content-Length: 3')],
  ['a length and chunks', whole('200 OK', secret, chunked)],
  ['a negative length', raw('HTTP/1.1 200 OK', 'Content-Length: -1', '', secret)],
  ['a length that is no number', raw('HTTP/1.1 200 OK', 'Content-Length: 0x10', '', secret)],
  ['a length beyond 64 bits', raw('HTTP/1.1 200 OK', 'Content-Length: 99999999999999999999', '', secret)],
  ['a length beyond what comes', raw('HTTP/1.1 200 OK', `Content-Length: ${secret.length + 1}`, '', secret)],
  ['a length before the end of the object', raw('HTTP/1.1 200 OK', 'Content-Length: 20', '', secret)],
  ['a chunk that is cut', raw('HTTP/1.1 200 OK', chunked, '', 'ff', secret)],
  ['chunks without an end', raw('HTTP/1.1 200 OK', chunked, '', secret.length.toString(16), secret, '')],
  ['a size of a chunk that is none', raw('HTTP/1.1 200 OK', chunked, '', 'xyz', secret, '0', '', '')],
  ['a size of a chunk beyond 64 bits', raw('HTTP/1.1 200 OK', chunked, '', 'f'.repeat(17), secret, '0', '', '')],
  ['another coding', whole('200 OK', secret, 'Transfer-Encoding: gzip')],
  ['a compressed body', whole('200 OK', secret, 'Content-Encoding: gzip')],
  ['another protocol', raw('HTTP/1.1 101 Switching Protocols', 'Upgrade: x', 'Connection: Upgrade', '', secret)],
  ['no content', raw('HTTP/1.1 204 No Content', '', '')],
  ['a part of the content', whole('206 Partial Content', secret, 'Content-Range: bytes 0-9/99')],
  ['a redirection', whole('302 Found', '', 'Location: http://127.0.0.1:1/')],
  ['not modified', raw('HTTP/1.1 304 Not Modified', '', '')],
  ['a 404 of a proxy', whole('404 Not Found', '<!doctype html>', 'Content-Type: text/html')],
  ['a 404 without a body', whole('404 Not Found', '')],
  ['a NotFound of another object', whole('404 Not Found', missing({ name: 'b', kind: 'secrets' }), json)],
  ['a NotFound of no object', whole('404 Not Found', missing({}), json)],
  ['a NotFound with 200', whole('200 OK', missing({ name: 'a' }), json)],
  ['a page of HTML', whole('200 OK', '<!doctype html><title>a</title>', 'Content-Type: text/html')],
  ['an empty body', whole('200 OK', '', json)],
  ['half of the object', whole('200 OK', secret.slice(0, 40), json)],
  ['two objects', whole('200 OK', secret + secret, json)],
  ['null', whole('200 OK', 'null', json)],
  ['a list', whole('200 OK', `[${secret}]`, json)],
  ['levels without end', whole('200 OK', '['.repeat(60_000), json)],
  ['more than the limit', whole('200 OK', object({ annotations: { a: 'x'.repeat(70_000) } }), json)],
  ['another object', whole('200 OK', object({ name: 'b' }), json)],
  ['an object of another namespace', whole('200 OK', object({ namespace: 'm' }), json)],
  ['an object without a version', whole('200 OK', object({ resourceVersion: undefined }), json), 'unknown'],
  ['an object with a version that is none', whole('200 OK', object({ resourceVersion: '1 2' }), json), 'unknown'],
  ['data that is no base64', whole('200 OK', secret.replace('dg==', '%%%'), json), 'unknown'],
  ['data that is a list', whole('200 OK', secret.replace('"dg=="', '["dg=="]'), json), 'unknown'],
]

await t.test('no hostile answer is read as an object or as its absence', async (t) => {
  t.teardown(() => answers.close?.())
  t.ok(cases.filter(([, , reads]) => reads === undefined || reads === 'unknown').length >= 45)
  for (const [of, answer, reads] of cases) t.equal(await answers.read(Buffer.from(answer, 'latin1')), reads, of)
})
