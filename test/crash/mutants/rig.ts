import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ChildProcess } from 'node:child_process'
import { endGroup, startGroup } from '../process-group.js'
import type { Answer } from './answer.js'
import type { Item } from './battery.js'
import type { Order, Reply } from './rig-process.js'
import { inRoom } from './trial.js'
import type { Workshop } from './workshop.js'

/** Every module that a process has loaded stays in it. */
const timesAtMost = 60

const linked = ['src', 'native', 'bin', 'test', 'bench', 'dist', 'package.json']

/** The root of a test file's tests is one that the rig has made for it; behind the first failure it starts no other. */
const testModule = `
const root = () => globalThis.__testRoot
const test = (...all) => (root().passing() ? root().test(...all) : Promise.resolve())
export default new Proxy({}, {
  get(_, name) {
    if (name === 'test') return test
    const value = root()[name]
    return typeof value === 'function' ? value.bind(root()) : value
  },
})
`

/**
 * A process that runs test files again and again, each time with modules loaded anew: a start costs more than most tests do. Modules are
 * known by their paths, so each time has a directory of links of its own (\`--preserve-symlinks\`).
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

  /** Runs these on the copy as it is now. `patience`: seconds for all of them. */
  async try(items: readonly Item[], patience: number): Promise<Answer> {
    if (this.#times >= timesAtMost) this.stop()
    this.#child ??= this.#start()
    this.#times += 1
    this.#id += 1
    const directory = join(this.#links, `${this.#id}`)
    mkdirSync(directory)
    for (const name of linked) symlinkSync(join(this.shop.directory, name), join(directory, name))
    const names = new Map(items.map((item) => [item.command[0] ?? '', item.name]))
    const answer = await this.#ask({ id: this.#id, directory, files: [...names.keys()] }, patience)
    rmSync(directory, { recursive: true })
    if (answer.verdict !== 'survived' && answer.verdict !== 'killed') this.stop()
    return { ...answer, by: names.get(answer.by) ?? answer.by }
  }

  #start(): ChildProcess {
    const program = ['--preserve-symlinks', 'test/crash/mutants/rig-process.js']
    const { command, options } = inRoom(this.shop, program, { TAP_TIMEOUT: '0' })
    const [first = '', ...rest] = command
    return startGroup(first, rest, { ...options, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  }

  async #ask(order: Order, patience: number): Promise<Answer> {
    const child = this.#child
    if (child === undefined) throw new Error('it has not been started')
    return new Promise<Answer>((resolve) => {
      const done = (answer: Answer): void => {
        clearTimeout(timer)
        child.removeAllListeners('message').removeAllListeners('exit')
        resolve(answer)
      }
      const timer = setTimeout(() => done({ verdict: 'hangs', by: '' }), patience * 1000)
      child.on('message', (reply: Reply) => {
        if (reply.id === order.id) done({ verdict: reply.verdict, by: reply.by })
      })
      child.once('exit', () => done({ verdict: 'breaks', by: '' }))
      child.send(order, (error) => {
        if (error) done({ verdict: 'breaks', by: '' })
      })
    })
  }

  stop(): void {
    if (this.#child) endGroup(this.#child)
    this.#child = undefined
    this.#times = 0
  }
}
