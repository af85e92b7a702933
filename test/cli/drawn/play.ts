/**
 * Plays a drawn life on a disk of its own, with agents in processes of their own, and judges what is there once the last file has stood for
 * its delays. The judge knows the files, the objects and what it has seen on the disk itself. It reads no record, and no status but which file is
 * in force:
 *
 *   1. each configured directory holds what its objects render now; its hook has seen that
 *   2. an old path is gone, once its directory is there
 *   3. what left the configuration is gone with `onDrop: remove`, and whole with `keep`; either, where another
 *      file came before this one was read
 *   4. what the generator has made itself is there, under whatever name; but where the file says `adopt: replace`, rule 1 holds
 *   5. beside a directory lie no more earlier contents than `history` says, and none longer than `historyMaxAge`
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readTree } from '../../e2e/disk.js'
import { removeTree } from '../../remove-tree.js'
import { until } from '../../until.js'
import { hurried, tenMinutesPass } from '../absences.js'
import { AgentProcess, commandLine, holdfast } from '../holdfast.js'
import { claimed, type Directory, labels, type Path, paths, type Secret, secrets, type Step } from './draw.js'

/** What a path is to the agents, by the files alone. */
type Life =
  | { readonly is: 'configured' | 'old'; readonly directory: Directory; readonly before: readonly OnDrop[] }
  /** `whole`: the disk held it, and it was on no move, when it left. */
  | { readonly is: 'left'; readonly onDrops: readonly OnDrop[]; readonly whole: boolean }

type OnDrop = Directory['onDrop']

/** Milliseconds between two looks at how long a sync takes; one may take as long. */
const stallInterval = 500

/** Another user's lives go without the disks that come and go. */
const mayMount = spawnSync('unshare', ['--mount', 'true']).status === 0

/** The name of an earlier content. */
const generation = /^\.holdfast-[0-9a-f]{16}\.\d+-/

/** Milliseconds that a life may wait, beside its own `wait` steps: the delays of all files, and a machine that does much else. */
const longest = 120_000

export class Played {
  readonly root = mkdtempSync(join(tmpdir(), 'holdfast-drawn-'))
  readonly #agents: (AgentProcess | undefined)[] = [undefined, undefined]
  readonly #now: (readonly Directory[])[] = [[], []]
  readonly #lives = new Map<Path, Life>()
  readonly #objects = new Map<Secret, string>()
  /** All that each object ever was. */
  readonly #texts = new Set<string>()
  /** The generator's own files, by path: their texts. */
  readonly #own = new Map<Path, string[]>()
  /** The operator has consented that its own files go there; the agent may have done it, or not yet. */
  readonly #consented = new Set<Path>()
  readonly #mounted = new Set<Path>()
  #count = 0
  #closed = false
  #deadline: number
  /** When the last look at the disk began, which has not ended if it hangs. */
  #lookedAt = 0
  #heldUntil = 0

  constructor(
    private readonly prefix: readonly string[],
    patience = longest,
  ) {
    this.#deadline = performance.now() + patience
    mkdirSync(join(this.root, 'objects'))
    mkdirSync(join(this.root, 'hooks'))
    for (const path of paths) mkdirSync(join(this.root, 'disk', path), { recursive: true })
    // Mounts below it reach the agents, too, each of which may have its own table of mounts.
    if (mayMount) {
      execFileSync('mount', ['--bind', join(this.root, 'disk'), join(this.root, 'disk')])
      execFileSync('mount', ['--make-shared', join(this.root, 'disk')])
    }
    for (const secret of secrets) this.#put(secret)
    void this.#allowStalls()
  }

  /** Where the disk or the processors stand still for all, the life gets that time back: some machines stall for half a minute. */
  async #allowStalls(): Promise<void> {
    const probe = await open(join(this.root, 'probe'), 'w')
    while (!this.#closed) {
      const began = (this.#lookedAt = performance.now())
      await probe.write('x', 0)
      await probe.sync()
      await sleep(stallInterval)
      this.#deadline += Math.max(performance.now() - began - 2 * stallInterval, 0)
    }
    await probe.close()
  }

  /** @throws Error that names the broken rule */
  async play(steps: readonly Step[]): Promise<void> {
    for (const step of steps) await this.#take(step)
    for (const path of this.#mounted) this.#unmount(path)
    const running = this.#agents.flatMap((agent, index) => (agent ? [index] : []))
    for (const secret of secrets) if (!this.#objects.has(secret)) this.#put(secret)
    await this.#holds('the last files hold', () => this.#wrongNow())
    for (const secret of secrets) this.#put(secret)
    await this.#holds('the last files hold, with newer objects', () => this.#wrongNow() ?? this.#wrongHook())
    // An agent that finds a hold tries a removal again after a minute.
    await this.#until('the last hold is over', () => performance.now() > this.#heldUntil)
    for (const index of running) await this.#end(index)
    for (const index of running) this.#start(index)
    for (const index of running) await this.#inForce(index)
    for (const index of running) if (this.#agents[index]) tenMinutesPass(this.#agents[index])
    const wrong = (): string | undefined => this.#wrongNow() ?? this.#wrongLeft() ?? this.#wrongHistory()
    await this.#holds('what has left is as its onDrop says', wrong)
    // Ongoing work comes round once more.
    await this.#take({ step: 'wait', milliseconds: 1500 })
    await this.#holds('and stays so', wrong)
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const agent of this.#agents) if (agent?.running) await agent.end('SIGKILL')
    for (const path of this.#mounted) this.#unmount(path)
    if (mayMount) spawnSync('umount', ['--lazy', join(this.root, 'disk')])
    removeTree(this.root)
  }

  /** The end of each agent's log. */
  logs(): string {
    const files = readdirSync(this.root).filter((name) => name.endsWith('.log'))
    return files.map((name) => `${name}:\n${readFileSync(join(this.root, name), 'utf8').slice(-3000)}`).join('\n')
  }

  /** All that a life waits for ends at the same time. */
  async #until(what: string, check: () => boolean): Promise<void> {
    // The deadline moves on while the machine stands still.
    for (;;) {
      const before = this.#deadline
      const within = Math.max(before - performance.now(), 0)
      const outcome = await until(what, check, { within, every: 50 }).catch((error: unknown) => ({ error }))
      if (typeof outcome !== 'object') return
      if (this.#deadline === before) throw outcome.error
    }
  }

  async #holds(what: string, wrong: () => string | undefined): Promise<void> {
    const refusal = (): string | undefined =>
      this.#agents.flatMap((agent) => agent?.log() ?? []).find(({ reason }) => reason === 'ConfigurationInvalid')?.msg
    await this.#until(what, () => {
      if (refusal() !== undefined) return true
      const text = wrong()
      if (text !== undefined) throw new Error(text)
      return true
    })
    if (refusal() !== undefined) throw new Error(`a file was refused: ${refusal()}`)
  }

  async #take(step: Step): Promise<void> {
    switch (step.step) {
      case 'configure':
        await this.#configure(step.agent, step.directories)
        return
      case 'put':
        this.#put(step.secret)
        return
      case 'delete':
        rmSync(join(this.root, 'objects', `${step.secret}.yaml`), { force: true })
        this.#objects.delete(step.secret)
        return
      case 'kill':
        await this.#agents[step.agent]?.end('SIGKILL')
        if (this.#agents[step.agent]) this.#start(step.agent)
        return
      case 'lose':
        this.#lose(step.path)
        return
      case 'own':
        await this.#makeOwn(step.path)
        return
      case 'hold':
        await holdfast(['hold', this.#target(step.path), '--for', '1s', '--lock-timeout', '0s'])
        this.#heldUntil = performance.now() + 1000
        return
      case 'mount':
        this.#mount(step.path)
        return
      case 'unmount':
        this.#unmount(step.path)
        return
      case 'wait':
        this.#deadline += step.milliseconds
        await sleep(step.milliseconds)
    }
  }

  #mount(path: Path): void {
    if (!mayMount || this.#mounted.has(path) || this.#own.has(path) || this.#lives.get(path)?.is !== 'configured')
      return
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', join(this.root, 'disk', path)])
    this.#mounted.add(path)
  }

  /** What the disk before it holds is old. An agent that has left the path meanwhile has seen nothing of it: the files say nothing of that. */
  #unmount(path: Path): void {
    if (!this.#mounted.delete(path)) return
    execFileSync('umount', ['--lazy', join(this.root, 'disk', path)])
    if (this.#lives.get(path)?.is !== 'configured') this.#lives.delete(path)
  }

  #target(path: Path): string {
    return join(this.root, 'disk', path, 'dir')
  }

  #put(secret: Secret): void {
    const text = `${secret} ${++this.#count}`
    const metadata = { name: secret, labels: { group: labels[secret] } }
    const file = join(this.root, 'objects', secret)
    writeFileSync(
      `${file}.new`,
      JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: { key: text } }),
    )
    renameSync(`${file}.new`, `${file}.yaml`)
    this.#objects.set(secret, text)
    this.#texts.add(text)
  }

  async #configure(agent: number, directories: readonly Directory[]): Promise<void> {
    const before = this.#now[agent] ?? []
    const wasRead = before.length > 0 && this.#isInForce(agent)
    this.#now[agent] = directories
    for (const path of claimed(before)) this.#leave(path, wasRead)
    for (const directory of directories) {
      if (directory.adopt === 'replace' && this.#own.delete(directory.path)) this.#consented.add(directory.path)
      this.#configured(directory.path, { is: 'configured', directory })
      if (directory.movedFrom) this.#configured(directory.movedFrom, { is: 'old', directory })
    }
    const document = {
      ...{ apiVersion: 'holdfast.dev/v1alpha1', kind: 'AgentConfiguration' },
      stateDirectory: this.#state(agent),
      source: { namespace: 'demo', files: { path: join(this.root, 'objects') } },
      driftInterval: '1s',
      directories: directories.map((each) => this.#document(each)),
    }
    const file = this.#file(agent)
    writeFileSync(`${file}.new`, JSON.stringify(document))
    renameSync(`${file}.new`, file)
    const running = this.#agents[agent]
    if (running === undefined) {
      this.#start(agent)
      return
    }
    await this.#until(`agent ${agent} takes SIGHUP`, () => running.catches('SIGHUP'))
    running.signal('SIGHUP')
  }

  #document({ path, contents, movedFrom, hook, check, onDrop, history, ages, adopt }: Directory): object {
    const target = this.#target(path)
    const script = 'cat "$0"/*/key > "$1.new" && mv "$1.new" "$1"'
    return {
      ...{ path: target, onDrop, history },
      ...(ages && { historyMaxAge: '1s' }),
      ...(adopt && { adopt }),
      contents:
        typeof contents === 'string'
          ? [{ secrets: { selector: `group=${contents}`, into: '{name}', optional: true } }]
          : contents.map((secret) => ({ secret, into: secret })),
      ...(movedFrom && { movedFrom: this.#target(movedFrom), movedFromKeep: '1s' }),
      ...(hook && { afterPublish: [{ exec: ['sh', '-c', script, target, join(this.root, 'hooks', path)] }] }),
      ...(check && { beforePublish: [{ exec: ['test', '-d', '{dir}'] }] }),
    }
  }

  #configured(path: Path, as: { readonly is: 'configured' | 'old'; readonly directory: Directory }): void {
    const life = this.#lives.get(path)
    this.#lives.set(path, { ...as, before: life?.is === 'left' ? life.onDrops : [] })
  }

  /**
   * The files' word on it from now on, and the disk's content. The agent may read a file that comes too soon after another instead of that.
   */
  #leave(path: Path, wasRead: boolean): void {
    const life = this.#lives.get(path)
    if (life === undefined || life.is === 'left') return
    const whole = life.is === 'configured' && life.directory.movedFrom === undefined && this.#isWhole(path)
    const onDrops = [life.directory.onDrop, ...(wasRead ? [] : life.before)]
    this.#lives.set(path, { is: 'left', onDrops, whole })
  }

  #isWhole(path: Path): boolean {
    const texts = Object.values(readTree(this.#target(path)) ?? {})
    return texts.length > 0 && texts.every((text) => this.#texts.has(text))
  }

  #lose(path: Path): void {
    // The generator's own file there must stay.
    if (this.#own.has(path)) return
    rmSync(this.#target(path), { recursive: true, force: true })
    const life = this.#lives.get(path)
    if (life?.is === 'left') this.#lives.set(path, { ...life, whole: false })
  }

  /** Only once the agents know that the path is not theirs: until then, it would be drift. */
  async #makeOwn(path: Path): Promise<void> {
    if (this.#mounted.has(path)) return
    for (const index of this.#agents.keys()) await this.#inForce(index)
    mkdirSync(this.#target(path), { recursive: true })
    const text = `own ${++this.#count}`
    writeFileSync(join(this.#target(path), text), text)
    this.#own.set(path, [...(this.#own.get(path) ?? []), text])
  }

  async #inForce(index: number): Promise<void> {
    const agent = this.#agents[index]
    if (agent === undefined) return
    await this.#holds(`the file of agent ${index} is in force`, () =>
      this.#isInForce(index) || !agent.running ? undefined : 'status.json tells of another file',
    )
    if (!agent.running) throw new Error(`agent ${index} has ended by itself`)
  }

  /** What the agent itself tells, a little after it is so: this decides what a file was worth that another has replaced, and how long to wait. */
  #isInForce(index: number): boolean {
    const digest = createHash('sha256')
      .update(readFileSync(this.#file(index)))
      .digest('hex')
    const status = join(this.#state(index), 'status.json')
    const text = existsSync(status) ? readFileSync(status, 'utf8') : '{}'
    return text.includes(`sha256:${digest}`) && text.includes(`"pid": ${this.#agents[index]?.pid},`)
  }

  #file(agent: number): string {
    return join(this.root, `${agent}.yaml`)
  }

  #state(agent: number): string {
    return join(this.root, `state-${agent}`)
  }

  #start(index: number): void {
    const line = commandLine(['agent', '--config', this.#file(index), '--log-format', 'json'], hurried)
    this.#agents[index] = new AgentProcess(join(this.root, `${index}.log`), [...this.prefix, 'env', ...line])
  }

  /** In order, as ten minutes have just passed. */
  async #end(index: number): Promise<void> {
    const agent = this.#agents[index]
    if (agent === undefined) return
    await this.#inForce(index)
    await this.#until(`agent ${index} takes SIGTERM`, () => agent.catches('SIGTERM'))
    const before = this.#deadline
    tenMinutesPass(agent)
    agent.signal('SIGTERM')
    await this.#until(`agent ${index} ends`, () => !agent.running)
    const stalled = this.#deadline > before || performance.now() - this.#lookedAt > 2 * stallInterval
    const code = await agent.end()
    // A disk that hangs does not keep the agent: it ends by the signal, and says so.
    const left = agent.log().some(({ reason, signal }) => reason === 'Stalled' && signal === 'SIGTERM')
    if (code !== 0 && !(code === 'SIGTERM' && stalled && left)) throw new Error(`agent ${index} ended with ${code}`)
  }

  #rendered({ contents }: Directory): Record<string, string> {
    const named = typeof contents === 'string' ? secrets.filter((one) => labels[one] === contents) : contents
    return Object.fromEntries(named.map((one) => [`${one}/key`, this.#objects.get(one) ?? '']))
  }

  #wrongNow(): string | undefined {
    for (const [path, life] of this.#lives) {
      const found = readTree(this.#target(path))
      if (this.#own.has(path) || life.is === 'left') continue
      // The consent covers a directory's own path, and not the path that it has moved from.
      if (this.#consented.has(path) && (life.is === 'old' || life.directory.adopt !== 'replace')) continue
      if (life.is === 'configured' && show(found) !== show(this.#rendered(life.directory)))
        return `${path} must hold ${show(this.#rendered(life.directory))}, and holds ${show(found)}`
      if (life.is === 'configured') this.#consented.delete(path)
      // Another program's file at the new path keeps the old one where it is.
      if (life.is === 'old' && !this.#isForeign(life.directory.path) && found)
        return `${path} has moved to ${life.directory.path}, and must be gone; it holds ${show(found)}`
    }
    for (const [path, texts] of this.#own) {
      const found = Object.values(readTree(join(this.root, 'disk', path)) ?? {})
      const gone = texts.find((text) => !found.includes(text))
      if (gone !== undefined) return `"${gone}", which the generator has made at ${path}, is gone`
    }
    return undefined
  }

  #isForeign(path: Path): boolean {
    return this.#own.has(path) || this.#consented.has(path)
  }

  #wrongHistory(): string | undefined {
    for (const [path, life] of this.#lives) {
      if (life.is !== 'configured' || this.#isForeign(path)) continue
      const { history, ages } = life.directory
      const past = readdirSync(join(this.root, 'disk', path)).filter((name) => generation.test(name))
      const most = ages ? 0 : history
      if (past.length > most) return `beside ${path} may lie ${most} earlier contents, and there are ${past.join(', ')}`
    }
    return undefined
  }

  #wrongHook(): string | undefined {
    for (const [path, life] of this.#lives) {
      if (life.is !== 'configured' || !life.directory.hook || this.#isForeign(path)) continue
      const file = join(this.root, 'hooks', path)
      const wanted = Object.entries(this.#rendered(life.directory))
        .sort()
        .map(([, text]) => text)
      const seen = existsSync(file) ? readFileSync(file, 'utf8') : 'nothing'
      if (seen !== wanted.join('')) return `the hook of ${path} must have seen ${wanted.join('')}, and has seen ${seen}`
    }
    return undefined
  }

  #wrongLeft(): string | undefined {
    for (const [path, life] of this.#lives) {
      if (life.is !== 'left' || this.#isForeign(path)) continue
      const found = readTree(this.#target(path))
      const is = (onDrop: OnDrop): boolean => life.onDrops.every((each) => each === onDrop)
      if (is('remove') && found) return `${path} left with onDrop: remove, and must be gone; it holds ${show(found)}`
      if (is('keep') && life.whole && !this.#isWhole(path))
        return `${path} left with onDrop: keep, and must be whole; it holds ${show(found)}`
    }
    return undefined
  }
}

function show(tree: Readonly<Record<string, string>> | undefined): string {
  return tree === undefined ? 'nothing' : JSON.stringify(Object.entries(tree).sort())
}
