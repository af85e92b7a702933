/** `-o`: one document in each format, and text with further columns. */
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { holdfast, Node, scratch } from '../holdfast.js'

/** Without what differs between two looks. */
function untimed(document: unknown): unknown {
  return JSON.parse(JSON.stringify(document).replace(/"lastTransitionTime":"[^"]*"/g, '"lastTransitionTime":""'))
}

await t.test('YAML is the same document as JSON, and wide text has what text leaves out', async (t) => {
  const node = new Node(t, [{ path: 'disk/web', history: 2, contents: [{ secret: 'web' }] }])
  node.put('Secret', 'web', { password: '1' })
  t.equal((await node.run('sync')).code, 0)
  const path = node.path('disk/web')
  const { digest } = (
    JSON.parse((await node.run('verify', '-o', 'json')).stdout) as { directories: [{ digest: string }] }
  ).directories[0]
  const looks: (readonly [command: string, run: (format: string) => ReturnType<typeof holdfast>, wide: RegExp])[] = [
    ['verify', (format) => node.run('verify', '-o', format), / DIGEST .*\n.* ok .*T.*Z .*sha256:\w{64}/],
    ['status', (format) => node.run('status', '-o', format), / OBJECTS\n.* sha256:\w{64} +Secret demo\/web/],
    ['history', (format) => holdfast(['history', path, '-o', format]), / sha256:\w{64} +Secret demo\/web/],
    ['sync', (format) => node.run('sync', '-o', format), /^unchanged .*sha256:\w{64}/],
    ['release', (format) => holdfast(['release', path, '-o', format]), /was not held/],
  ]
  for (const [command, run, pattern] of looks) {
    const [json, yaml, text, wide] = [await run('json'), await run('yaml'), await run('text'), await run('wide')]
    for (const { code, stderr } of [json, yaml, text, wide]) t.equal(code, 0, `${command}: ${stderr}`)
    t.notMatch(yaml.stdout, /^\{/, command)
    t.same(untimed(parse(yaml.stdout)), untimed(JSON.parse(json.stdout)), command)
    t.match(wide.stdout, pattern, command)
    if (command !== 'sync' && command !== 'release') t.notMatch(text.stdout, digest, `${command}: text is narrow`)
  }
})

await t.test('a failure prints a document, too, also where the command line itself is wrong', async (t) => {
  const absent = join(scratch(t), 'absent')
  const failed = await holdfast(['history', absent, '-o', 'yaml'])
  t.match(failed, { code: 1, stderr: /published nothing/ })
  t.match(parse(failed.stdout), { error: { message: /published nothing/ } })
  for (const words of [['-o', 'yaml'], ['-oyaml'], ['--output=yaml']]) {
    const wrong = await holdfast(['history', absent, '--bogus', ...words])
    t.equal(wrong.code, 2)
    t.match(parse(wrong.stdout), { error: { message: /unknown option '--bogus'/ } }, words.join(' '))
  }
  const byVariable = await holdfast(['history', absent, '--bogus'], { env: { HOLDFAST_OUTPUT: 'json' } })
  t.match(JSON.parse(byVariable.stdout), { error: { message: /--bogus/ } })
  t.equal((await holdfast(['history', absent, '--bogus', '-o', 'wide'])).stdout, '')
})
