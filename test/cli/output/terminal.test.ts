/** What a terminal obeys does not leave a command, wherever it comes from; the letters of any language do. */
import { mkdirSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { behindDoor, painter } from '../../../src/cli/output/colour.js'
import { processIo } from '../../../src/cli/output/io.js'
import { holdfast, Node } from '../holdfast.js'

/** C0, C1, an override of the direction, and a separator of lines. */
const hostile = 'a\u001b]0;x\u0007\u009b31m\u202egpj\u2028b'
const obeyed = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/
const shown = 'a\\u001b]0;x\\u0007\\u009b31m\\u202egpj\\u2028b'
const letters = 'Zürich Ελλάδα Москва 東京 القاهرة हिन्दी 👩‍🚀'

await t.test('no command shows what a terminal obeys, of names and of arguments', async (t) => {
  const node = new Node(t, [{ path: 'disk/web', contents: [{ secret: 'web' }] }])
  node.put('Secret', 'web', { a: '1' })
  mkdirSync(node.path('disk/web'), { recursive: true })
  writeFileSync(`${node.path('disk/web')}/${hostile}`, '')
  const runs = [
    ...['text', 'json', 'yaml'].flatMap((format) => [
      node.run('sync', '-o', format),
      node.run('verify', '-o', format),
      node.run('status', '-o', format),
      holdfast(['history', `/${hostile}`, '-o', format]),
      holdfast(['replace', node.path('x'), '--from', hostile, '-o', format]),
    ]),
    ...['text', 'json'].map((format) => node.run('sync', '--log-format', format)),
    holdfast([hostile]),
    holdfast(['history', `--${hostile}`]),
  ]
  for (const { stdout, stderr } of await Promise.all(runs)) {
    t.notMatch(stdout, obeyed)
    t.notMatch(stderr, obeyed)
  }
  const json = await holdfast(['history', `/${hostile}`, '-o', 'json'])
  t.ok(
    (JSON.parse(json.stdout) as { error: { message: string } }).error.message.includes(hostile),
    'JSON means the same',
  )
  const yaml = await holdfast(['history', `/${hostile}`, '-o', 'yaml'])
  t.ok((parse(yaml.stdout) as { error: { message: string } }).error.message.includes(hostile), 'and so does YAML')
  t.match(await holdfast(['history', `/${letters}`]), { stderr: letters })
})

await t.test('a terminal gets the colours of holdfast, and those of nothing else', async (t) => {
  const written: string[] = []
  const stream = { isTTY: true, columns: 80, write: (text: string) => void written.push(text) }
  const { stdout } = behindDoor({ ...processIo, stdout: stream, stderr: stream, env: {} })
  t.strictSame([stdout.isTTY, stdout.columns], [true, 80])
  stdout.write(`${painter(true)('red', hostile)} ${hostile}\tx\n`)
  stdout.control?.('\r\u001b[K')
  t.strictSame(written, [`\u001b[31m${shown}\u001b[0m ${shown}\tx\n`, '\r\u001b[K'])
})
