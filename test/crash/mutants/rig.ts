import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ChildProcess } from 'node:child_process'
import { endGroup, startGroup } from '../process-group.js'
import type { Answer } from './answer.js'
import type { Item } from './battery.js'
import type { Order, Reply } from './rig-process.js'
import { inRoom } from './trial.js'
import type { Workshop } from './workshop.js'

/** Seconds, on a machine that is busy. */
const startsWithin = 5

/** Every module that a process has loaded stays in it. */
const timesAtMost = 60

/** A test's own directory of links has none to itself, and finds this rig's tap. */
const unlinked = ['times', 'node_modules']

/** The rig makes the root of a test file's tests; behind the first failure it starts no other, unless `all`. */
const testModule = `
const root = () => globalThis.__testRoot
const test = (...all) => (root().passing() || globalThis.__testAll ? root().test(...all) : Promise.resolve())
export default new Proxy({}, {
  get(_, name) {
    if (name === 'test') return test
    const value = root()[name]
    return typeof value === 'function' ? value.bind(root()) : value
  },
})
`

/**
 * A process that runs test files again and again, each time with modules loaded anew: a start costs more than most tests do. Node knows
 * modules by their paths, so each time has a new directory of links (\`--preserve-symlinks\`).
 */
export class Rig {
  #child: ChildProcess | undefined
  #times = 0
  #id = 0
  readonly #links: string

  constructor(readonly shop: Workshop) {
    this.#links = join(shop.directory, 'times')
    const module = join(this.#links, 'node_modules/tap')
    mkdirSync(module, { recursive: true })
    writeFileSync(join(module, 'package.json'), '{ "name": "tap", "type": "module", "exports": "./index.js" }')
    writeFileSync(join(module, 'index.js'), testModule)
  }

  /** Runs these on the copy as it is now. `patience`: seconds for each. What hangs, or ends the process, is named. */
  async try(items: readonly Item[], patience: (item: Item) => number): Promise<Answer> {
    if (this.#times >= timesAtMost) this.stop()
    this.#child ??= this.#start()
    this.#times += 1
    this.#id += 1
    const directory = join(this.#links, `${this.#id}`)
    mkdirSync(directory)
    const { directory: copy } = this.shop
    for (const name of readdirSync(copy))
      if (!unlinked.includes(name)) symlinkSync(join(copy, name), join(directory, name))
    const known = new Map(items.map((item) => [item.command[0] ?? '', item]))
    const order = { id: this.#id, directory, files: [...known.keys()] }
    const answer = await this.#ask(order, (file) => {
      const item = known.get(file)
      return item ? patience(item) : 0
    })
    rmSync(directory, { recursive: true })
    return { ...answer, by: known.get(answer.by)?.name ?? answer.by }
  }

  #start(): ChildProcess {
    const program = ['--preserve-symlinks', 'test/crash/mutants/rig-process.js']
    const { command, options } = inRoom(this.shop, program, { TAP_TIMEOUT: '0' })
    const [first = '', ...rest] = command
    return startGroup(first, rest, { ...options, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  }

  async #ask(order: Order, patience: (file: string) => number): Promise<Answer> {
    const child = this.#child
    if (child === undefined) throw new Error('it has not been started')
    return new Promise<Answer>((resolve) => {
      let file = order.files[0] ?? ''
      let timer: NodeJS.Timeout
      const done = (answer: Answer): void => {
        clearTimeout(timer)
        child.removeAllListeners('message').removeAllListeners('exit')
        resolve(answer)
      }
      const stopped = (verdict: 'hangs' | 'breaks'): void => {
        this.stop()
        done({ verdict, by: file })
      }
      const wait = (): NodeJS.Timeout => setTimeout(() => stopped('hangs'), (startsWithin + patience(file)) * 1000)
      timer = wait()
      child.on('message', (reply: Reply) => {
        if (reply.id !== order.id) return
        if ('begins' in reply) {
          file = reply.begins
          clearTimeout(timer)
          timer = wait()
        } else done(reply)
      })
      child.once('exit', () => stopped('breaks'))
      child.send(order, (error) => {
        if (error) stopped('breaks')
      })
    })
  }

  stop(): void {
    if (this.#child) endGroup(this.#child)
    this.#child = undefined
    this.#times = 0
  }
}
