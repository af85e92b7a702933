import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readOrMakeKey } from '../../torture/key.js'
import { scratch } from '../cli/holdfast.js'

await t.test('readOrMakeKey refuses a key file that a crash has left empty', async (t) => {
  const file = join(scratch(t), 'state.json.key')
  writeFileSync(file, '', { mode: 0o600 })
  const message = /state.json.key is empty: remove it, and the witness makes a new one/
  await t.rejects(readOrMakeKey(file), { message, invalid: 'argument' })
})
