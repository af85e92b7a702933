/** The mark of a program that was killed before its first announcement, and the log where its guard is killed. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { silent } from '../../src/log.js'
import { Guard } from '../../torture/guard.js'
import { scratch } from '../durable/scratch.js'
import { until } from '../until.js'

await t.test(
  "before the first announcement, the guard's mark names the generation before, in every environment",
  async (t) => {
    process.env['last'] = 'end'
    t.teardown(() => delete process.env['last'])
    const mark = join(scratch(t), 'ended-boot')
    const said: string[] = []
    const guard = await Guard.start(mark, 7, { ...silent, warn: (_, message) => void said.push(message) })
    // The kernel closes the pipe of a killed process.
    guard?.['child'].stdin?.destroy()
    await until('its mark', () => existsSync(`${mark}-7`) || undefined)
    await until('a warning', () => said[0])
    t.matchOnly(said, [/sh ended early \(0\); if this is killed and the machine restarted then, say --reset/])
  },
)
