/** The agent beside a configuration file that disappears. */
import { renameSync, unlinkSync } from 'node:fs'
import t from 'tap'
import { Node } from '../cli/holdfast.js'
import { until } from '../until.js'

const web = { path: 'disk/web', contents: [{ secret: 'web' }] }

for (const reload of ['auto', 'signal']) {
  await t.test(
    `reload: ${reload}: a deleted configuration file is one warning, and stands in the status`,
    async (t) => {
      const node = new Node(t, [web], { reload })
      node.put('Secret', 'web', { key: '1' })
      const agent = node.agent()
      await agent.logged('Published')
      const invalid = () =>
        (JSON.parse(node.read('state/status.json') ?? '{}') as { agent?: { configurationInvalid?: string } }).agent
          ?.configurationInvalid
      const file = node.configuration
      const aside = `${file}.aside`
      renameSync(file, aside)
      const line = await agent.logged('ConfigurationInvalid')
      t.match(line, { level: 'warn', configuration: file, msg: /holdfast\.yaml is gone.*stays in force/ })
      await until('the status says so', () => invalid()?.includes('is gone'))
      node.put('Secret', 'web', { key: '2' })
      await agent.logged('Published', 2)
      t.equal(node.read('disk/web/key'), '2', 'the old one stays in force')
      renameSync(aside, file)
      await until('the status says so no more', () => invalid() === undefined)
      const inForce = () => agent.log().filter(({ msg }) => msg.endsWith('is in force')).length
      // A rename changes the file's ctime: a watching agent reads it again, and must not meet it gone at that.
      if (reload === 'auto') await until('it is read again', () => inForce() === 1)
      const before = inForce()
      t.equal(agent.log().filter(({ reason }) => reason === 'ConfigurationInvalid').length, 1)

      unlinkSync(file)
      await agent.logged('ConfigurationInvalid', 2)
      node.configure([{ ...web, fileMode: '0640' }], { reload })
      if (reload === 'signal') agent.signal('SIGHUP')
      await until('another file is in force', () => inForce() > before)
      await until('the status says so no more', () => invalid() === undefined)
      t.equal(agent.log().filter(({ reason }) => reason === 'ConfigurationInvalid').length, 2)
      t.equal(await agent.end('SIGTERM'), 0)
    },
  )
}
