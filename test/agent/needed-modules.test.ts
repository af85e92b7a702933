/** What an agent has loaded for its configuration is there when it needs it, also without a free descriptor. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const source = (path: string) => fileURLToPath(import.meta.resolve(`../../src/${path}.js`))

/** Loads what these directories need, opens all the descriptors that it may, and answers which modules it can load then. */
function loadable(directories: readonly object[], modules: readonly string[]): string[] {
  const program = `
    import { openSync } from 'node:fs'
    import { loadNeeded } from '${source('agent/needed-modules')}'
    await loadNeeded({ directories: ${JSON.stringify(directories)} })
    try { for (;;) openSync('/dev/null') } catch {}
    const found = []
    for (const module of ${JSON.stringify(modules.map(source))})
      await import(module).then(() => found.push(module), () => undefined)
    console.log(JSON.stringify(found))`
  const limited = ['-c', 'ulimit -n 1024 && exec "$@"', 'bash', process.execPath, '--input-type=module', '-e', program]
  const found = JSON.parse(execFileSync('bash', limited, { encoding: 'utf8' })) as string[]
  return modules.filter((module) => found.includes(source(module)))
}

const users = 'static-pods/host-path-users'
const [exec, signal, systemd] = ['exec', 'signal', 'systemd'].map((type) => `directories/hook-${type}`)
const all = [exec, signal, systemd, users].map(String)

await t.test('the hooks of a configuration, and no others', async (t) => {
  const hooks = [[{ type: 'exec' }], [{ type: 'signal' }, { type: 'exec' }]]
  const directories = hooks.map((afterPublish) => ({ afterPublish, onDrop: 'keep' }))
  t.strictSame(loadable(directories, all), [exec, signal])
})

await t.test('who uses a path that may have to go', async (t) => {
  for (const more of [{ onDrop: 'remove' }, { onDrop: 'keep', movedFrom: { path: '/srv/old' } }])
    t.strictSame(loadable([{ afterPublish: [], ...more }], all), [users])
})
