import t from 'tap'
import { configurationChange } from '../../src/agent/agent.js'
import { parseConfiguration } from '../../src/config/parse.js'

const base = {
  apiVersion: 'holdfast.dev/v1alpha1',
  kind: 'AgentConfiguration',
  source: { namespace: 'n', files: { path: '/objects' } },
  server: { address: '127.0.0.1:1' },
}
const a = { path: '/srv/a', contents: [{ secret: 'a' }] }
const b = { path: '/srv/b', contents: [{ secret: 'b' }] }
const read = (document: object) => parseConfiguration(JSON.stringify({ ...base, ...document }), '/c.yaml')

await t.test('what a configuration that was read again asks for', async (t) => {
  const before = await read({ directories: [a, b] })
  const nothing = { added: [], changed: [], dropped: [], sourceChanged: false }
  t.strictSame(configurationChange(before, await read({ directories: [b, a] })), nothing, 'the order means nothing')
  const dropped = configurationChange(before, await read({ directories: [b] }))
  t.strictSame(dropped, { ...nothing, dropped: ['/srv/a'] })
  const changed = configurationChange(before, await read({ directories: [a, { ...b, fileMode: '0640' }] }))
  t.match(changed, { ...nothing, changed: [{ path: '/srv/b', fileMode: 0o640 }] })
  const added = configurationChange(before, await read({ directories: [a, b, { ...a, path: '/srv/c' }] }))
  t.match(added, { ...nothing, added: [{ path: '/srv/c' }] })
  const source = { namespace: 'n', files: { path: '/elsewhere' } }
  t.equal(configurationChange(before, await read({ directories: [a, b], source })).sourceChanged, true)
})
