/** Files that are no configuration at all: the parser refuses them without showing their content. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { loadConfiguration } from '../../src/config/parse.js'
import { ConfigurationError } from '../../src/config/problem.js'
import { sound } from './broken-configuration.js'
import { problemsOf } from './problems-of.js'

await t.test('the configuration refuses aliases that multiply without end', async (t) => {
  const bomb = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
  for (let level = 1; level < 9; level++) {
    const aliases = Array(10)
      .fill(`*a${level - 1}`)
      .join(', ')
    bomb.push(`a${level}: &a${level} [${aliases}]`)
  }
  const started = process.cpuUsage()
  t.match(await problemsOf(bomb.join('\n')), /stands for \d+ values once its aliases are expanded: use fewer aliases/)
  const { user } = process.cpuUsage(started)
  // A billion values would take minutes.
  t.ok(user < 5_000_000, `${user / 1000} ms`)
})

await t.test('the configuration shows no content of a Secret named by mistake', async (t) => {
  const canary = 'Y2FuYXJ5LXZhbHVl'
  const texts = [
    `apiVersion: v1\nkind: Secret\ndata: { token: ${canary} }\nstringData:\n  x: ${canary}\n`,
    `kind: Secret\n  data: ${canary}\n`,
    `data: "${canary}\n`,
    `data: [${canary}\n`,
    `data: *${canary}\n`,
    `data: !${canary} x\n`,
    `data: &${canary}\n`,
    `data: |\n ${canary}\n\t${canary}`,
    `- ${canary}`,
    canary,
    `@${canary}`,
    `%${canary}\n---\n`,
    `"\\q${canary}"`,
    `{${canary}`,
    `source: { kubernetes: ${canary}, files: [${canary}] }\ndirectories: ${canary}\nserver: [${canary}]\n`,
    sound.replace('signal: { name: SIGHUP, pidFile: /run/x.pid }', `exec: ["/bin/x\\0${canary}", 1, "${canary}\\0"]`),
    sound.replace('signal: { name: SIGHUP, pidFile: /run/x.pid }', `http: { url: "http://${canary}@x/#${canary}" }`),
    sound.replace('signal: { name: SIGHUP, pidFile: /run/x.pid }', `http: { url: "ftp://x/${canary}" }`),
    sound.replace('signal: { name: SIGHUP, pidFile: /run/x.pid }', `http: { url: "${canary}" }`),
    sound.replace('signal: { name: SIGHUP, pidFile: /run/x.pid }', `exec: "x ${canary}"`),
  ]
  for (const text of texts) {
    const message = await problemsOf(text)
    t.not(message, 'none', text)
    t.notOk(message.includes(canary), message)
  }
})

await t.test('loadConfiguration refuses an unreadable file, and says why', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'holdfast-config-'))
  t.teardown(() => rm(directory, { recursive: true }))
  const at = (name: string) => join(directory, name)
  const messageOf = async (path: string) => {
    const error: unknown = await loadConfiguration(path).catch((caught: unknown) => caught)
    return error instanceof ConfigurationError ? error.message : error
  }
  t.equal(await messageOf(at('none')), `${at('none')}: cannot be read (ENOENT): there is no such file`)
  t.equal(await messageOf(directory), `${directory}: is not a regular file`)
  execFileSync('mkfifo', [at('fifo')])
  t.equal(await messageOf(at('fifo')), `${at('fifo')}: is not a regular file`)
  await writeFile(at('latin1'), Buffer.from([0x61, 0xff]))
  t.equal(await messageOf(at('latin1')), `${at('latin1')}: is not UTF-8 text`)
  await writeFile(at('large'), 'a'.repeat(5 * 1024 * 1024))
  t.equal(await messageOf(at('large')), `${at('large')}: is larger than 4194304 bytes`)
  await writeFile(at('long'), '#'.repeat(2 * 1024 * 1024))
  t.equal(await messageOf(at('long')), `${at('long')}:1:1: holds 2097152 characters: at most 1048576 are read`)
  await writeFile(at('good'), `\ufeff${sound}`)
  const configuration = await loadConfiguration(at('good'))
  t.equal(configuration.file, at('good'))
  t.equal(configuration.directories[1]?.path, at('second'), 'relative to the file, not to this process')
})
