/** What is left where the program is killed before it has announced anything, and what is said where its guard is. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { silent } from '../../src/log.js'
import { Guard } from '../../src/torture/guard.js'
import { scratch } from '../durable/scratch.js'
import { until } from '../until.js'

await t.test(
  'killed before the first announcement, the mark names the one before, whatever the environment holds',
  async (t) => {
    process.env['last'] = 'end'
    t.teardown(() => delete process.env['last'])
    const mark = join(scratch(t), 'ended-boot')
    const said: string[] = []
    const guard = await Guard.start(mark, 7, { ...silent, warn: (_, message) => void said.push(message) })
    // What the kernel does of a process that was killed.
    guard?.['child'].stdin?.destroy()
    await until('its mark', () => existsSync(`${mark}-7`) || undefined)
    await until('a warning', () => said[0])
    t.match(said, [/sh ended early \(0\); if this is killed and the machine restarted then, say --reset/])
  },
)
