/** `retire: whenUnused` as the agent does it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { holder } from '../check/holders.js'
import { until } from '../until.js'
import { Node } from './holdfast.js'
import { isKind } from '../crash/judge/names.js'

await t.test(
  'a process that works in the directory keeps its content until retireTimeout; then the log names the process',
  async (t) => {
    const directory = { path: 'disk/web', retire: 'whenUnused', retireTimeout: '1h', contents: [{ secret: 'web' }] }
    const node = new Node(t, [directory], { driftInterval: '1s' })
    node.put('Secret', 'web', { key: '1' })
    const agent = node.agent()
    await agent.logged('Published')
    const pid = await holder(t, 'hold', [], node.path('disk/web'))
    node.put('Secret', 'web', { key: '2' })
    await agent.logged('Published', 2)
    t.equal(readFileSync(`/proc/${pid}/cwd/key`, 'utf8'), '1')
    const staging = () => readdirSync(node.path('disk')).filter(isKind('staging', 'foreign'))
    const [old = ''] = staging()
    t.equal(readFileSync(join(node.path('disk'), old, 'key'), 'utf8'), '1')
    t.match((await node.run('status')).stdout, `process ${pid} (sh) works in old content`)
    node.configure([{ ...directory, retireTimeout: '1s' }], { driftInterval: '1s' })
    agent.signal('SIGHUP')
    await until('the short time is in force', () => agent.log().some(({ msg }) => msg.endsWith('is in force')))
    const second = await holder(t, 'hold', [], node.path('disk/web'))
    node.put('Secret', 'web', { key: '3' })
    const gone = await until('it is removed', () =>
      agent.log().find(({ msg }) => msg.includes('goes after retireTimeout')),
    )
    t.match(gone, { level: 'warn', msg: new RegExp(`though it is in use: process ${second} `) })
    await until('what has time is left', () => staging().join() === old)
    t.equal(node.read('disk/web/key'), '3')
    t.equal(await agent.end('SIGTERM'), 0)
  },
)
