/**
 * The peers without a toolchain, as a process that takes orders as driver.ts says: holdfast itself, and programs that it starts for each
 * order. Argument: the program (the script of the shell, or git-sync).
 */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import type { Order } from './driver.js'

const [program = ''] = process.argv.slice(2)
const run = promisify(execFile)

const publish: Record<string, (order: Order) => Promise<void>> = {
  holdfast: async ({ from, targets }) => {
    const { replaceDirectories } = await import('../../src/index.js')
    const files = Object.fromEntries(readdirSync(from).map((name) => [name, readFileSync(join(from, name))]))
    for (const result of await replaceDirectories(targets.map((target) => ({ target, files })))) {
      if ('error' in result) throw result.error
    }
  },
  shell: async ({ from, targets }) => {
    await run(program, [from, ...targets])
  },
  // One repository for each target; the link is the target.
  'git-sync': async ({ from, targets, prepare }) => {
    for (const target of targets) {
      const repository = `${from}.git`
      if (prepare) {
        commit(from, repository)
        continue
      }
      const root = join(dirname(target), `.${basename(target)}`)
      mkdirSync(root, { recursive: true })
      const where = ['--repo', `file://${repository}`, '--root', root, '--link', target, '--ref', 'HEAD']
      const once = ['--one-time', '--max-failures', '0', '--git-gc', 'off', '--git-config', 'safe.directory:*']
      await run(program, [...where, ...once], { env: { ...process.env, HOME: dirname(from) } })
    }
  },
}

/** The files become a commit of a repository beside them, in memory as they are. */
function commit(from: string, repository: string): void {
  const git = (...args: string[]): void => {
    execFileSync('git', [`--git-dir=${repository}`, `--work-tree=${from}`, ...args], { stdio: 'ignore', cwd: from })
  }
  const answers = (...args: string[]): boolean => {
    try {
      git(...args)
      return true
    } catch {
      return false
    }
  }
  if (!existsSync(repository)) git('init', '--initial-branch=main')
  git('add', '--all')
  // A commit of the same content would be another one.
  if (answers('rev-parse', '--verify', 'HEAD') && answers('diff', '--cached', '--quiet')) return
  git('-c', 'user.name=bench', '-c', 'user.email=bench@localhost', 'commit', '-m', 'content')
}

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as Order
  try {
    const task = publish[order.peer]
    if (!task) throw new Error('it is not among the peers of this driver')
    if (!order.prepare || order.peer === 'git-sync') await task(order)
    console.log('{}')
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }))
  }
}
