import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { executable as program } from '../project.js'
import t from 'tap'
import { scratch } from './holdfast.js'

/** Runs the program with arguments that need not be UTF-8: bash's printf makes the bytes. */
function run(command: string) {
  const { status, stdout, stderr } = spawnSync(
    'bash',
    ['-c', command.replaceAll('holdfast ', `'${process.execPath}' '${program}' `)],
    {
      encoding: 'utf8',
    },
  )
  return { code: status, stdout, stderr }
}

await t.test('commands refuse a path that is not UTF-8, and publish nothing under another name', async (t) => {
  const root = scratch(t)
  mkdirSync(join(root, 'from'))
  writeFileSync(join(root, 'from', 'file'), 'x')
  const before = readdirSync(root)
  const commands = [
    String.raw`holdfast replace "$(printf '${root}/bad\xff')" --from '${root}/from'`,
    String.raw`echo x | holdfast write "$(printf '${root}/bad\xff')"`,
    String.raw`holdfast replace '${root}/good' --from "$(printf '${root}/fr\xffom')"`,
  ]
  for (const command of commands) {
    const { code, stderr } = run(command)
    t.equal(code, 2, stderr)
    t.match(stderr, /not UTF-8/)
  }
  t.same(readdirSync(root), before)
})
