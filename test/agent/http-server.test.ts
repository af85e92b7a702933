import t from 'tap'
import { readiness } from '../../src/agent/http-server.js'

await t.test('readiness lists what is not intact, and only counts what is required', (t) => {
  const intact = { path: '/a', required: true, intact: true, reason: 'Published', message: '' }
  const broken = {
    path: '/b',
    required: true,
    intact: false,
    reason: 'ObjectMissing',
    message: 'no Secret x/y',
  }
  const optional = { ...broken, path: '/c', required: false }
  t.strictSame(readiness([intact, optional]), { ready: true, lines: ['[+]/a ok'] })
  t.strictSame(readiness([intact, broken]), {
    ready: false,
    lines: ['[+]/a ok', '[-]/b ObjectMissing: no Secret x/y'],
  })
  t.equal(readiness([]).ready, true)
  t.end()
})
