/**
 * Drawn lives of configurations: what an operator writes into the files of one or two agents, what their objects come to be meanwhile, and
 * what else happens on the node. Each configuration is valid by itself and with that of the other agent: a path has one publisher.
 */
import { Random } from '../../random.js'

export const secrets = ['s0', 's1', 's2', 's3'] as const
export type Secret = (typeof secrets)[number]
/** Each path has another parent, so that the leftovers beside it show. */
export const paths = ['a', 'b', 'c', 'd', 'e'] as const
export type Path = (typeof paths)[number]

/** Which of them a selector finds. */
export const labels: Readonly<Record<Secret, 'x' | 'y'>> = { s0: 'x', s1: 'x', s2: 'y', s3: 'y' }

export interface Directory {
  readonly path: Path
  readonly contents: readonly Secret[] | 'x' | 'y'
  readonly onDrop: 'keep' | 'remove'
  readonly history: number
  /** An earlier content goes after a second. */
  readonly ages?: true
  readonly adopt?: true | 'replace'
  readonly movedFrom?: Path
  /** afterPublish, beforePublish. */
  readonly hook?: true
  readonly check?: true
}

export type Step =
  | { readonly step: 'configure'; readonly agent: number; readonly directories: readonly Directory[] }
  | { readonly step: 'put' | 'delete'; readonly secret: Secret }
  | { readonly step: 'kill'; readonly agent: number }
  /**
   * The target goes; a file of the generator comes to an unconfigured path; `hold --for 1s`; an empty disk is mounted over a configured
   * directory's parent, and unmounted: what was there before is there again.
   */
  | { readonly step: 'lose' | 'own' | 'hold' | 'mount' | 'unmount'; readonly path: Path }
  | { readonly step: 'wait'; readonly milliseconds: number }

/** All paths that a configuration has something to do with. */
export function claimed(directories: readonly Directory[]): Path[] {
  return directories.flatMap(({ path, movedFrom }) => (movedFrom === undefined ? [path] : [path, movedFrom]))
}

/** The configurations of both agents after each step. */
function configurations(steps: readonly Step[]): (readonly Directory[])[][] {
  const now: (readonly Directory[])[] = [[], []]
  return steps.map((one) => {
    if (one.step === 'configure') now[one.agent] = one.directories
    return [...now]
  })
}

/**
 * What the agents accept: a path has one publisher, none moves on that something may still move to, and an agent moves only what no other
 * one has published.
 */
function isValid(steps: readonly Step[]): boolean {
  const moved = new Set<Path>()
  const publishers = new Map<Path, number>()
  return configurations(steps).every((both, index) => {
    const all = both.flatMap(claimed)
    const step = steps[index]
    if (step?.step === 'configure') {
      if (step.directories.length === 0) return false
      if (step.directories.some(({ movedFrom }) => movedFrom !== undefined && moved.has(movedFrom))) return false
      const { agent } = step
      if (step.directories.some(({ movedFrom }) => movedFrom && (publishers.get(movedFrom) ?? agent) !== agent))
        return false
      for (const { path, movedFrom } of step.directories) {
        publishers.set(path, agent)
        if (movedFrom) moved.add(path)
      }
    }
    return new Set(all).size === all.length && !(step?.step === 'own' && all.includes(step.path))
  })
}

const oneOf = <T>(random: Random, values: readonly T[]): T | undefined => values[random.below(values.length)]

export function drawSteps(seed: number): Step[] {
  const random = new Random(seed)
  const agents = random.chance(0.4) ? 2 : 1
  const now: Directory[][] = [[], []]
  const steps: Step[] = []
  const length = 6 + random.below(12)
  while (steps.length < length) {
    const agent = random.below(agents)
    const all = now.flatMap(claimed)
    const what = random.below(23)
    if (what < 9 || steps.length === 0) {
      const next = change(
        random,
        now[agent] ?? [],
        paths.filter((path) => !all.includes(path)),
      )
      const step = { step: 'configure', agent, directories: next } as const
      if (!isValid([...steps, step])) continue
      now[agent] = next
      steps.push(step)
    } else if (what < 12) steps.push({ step: 'wait', milliseconds: oneOf(random, [50, 300, 1500]) ?? 0 })
    else if (what < 15) steps.push({ step: 'put', secret: oneOf(random, secrets) ?? 's0' })
    else if (what < 16) steps.push({ step: 'delete', secret: oneOf(random, secrets) ?? 's0' })
    else if (what < 17) steps.push({ step: 'kill', agent })
    else if (what < 18) steps.push({ step: 'lose', path: oneOf(random, paths) ?? 'a' })
    else if (what < 19) steps.push({ step: 'hold', path: oneOf(random, paths) ?? 'a' })
    else if (what < 21) steps.push({ step: 'mount', path: oneOf(random, now.flat())?.path ?? 'a' })
    else if (what < 22) steps.push({ step: 'unmount', path: mounted(steps) ?? 'a' })
    else {
      const path = oneOf(
        random,
        paths.filter((each) => !all.includes(each)),
      )
      if (path !== undefined) steps.push({ step: 'own', path })
    }
  }
  return steps
}

/** The path that a disk was mounted over last, and not unmounted. */
function mounted(steps: readonly Step[]): Path | undefined {
  const disks = steps.reduce<Path[]>((before, one) => {
    if (one.step === 'mount') return [...before, one.path]
    return one.step === 'unmount' ? before.filter((path) => path !== one.path) : before
  }, [])
  return disks.at(-1)
}

/** The next configuration of an agent: a directory comes, goes, is changed, or moves, and sometimes two things at once. */
function change(random: Random, before: readonly Directory[], free: readonly Path[]): Directory[] {
  const directory = oneOf(random, before)
  const others = before.filter((other) => other !== directory)
  const fresh = oneOf(random, free)
  const what = random.below(6)
  const next = ((): Directory[] => {
    if (directory === undefined || what === 0) return fresh ? [...before, drawn(random, fresh)] : [...before]
    const { movedFrom, ...rest } = directory
    if (what === 1) return others
    if (what === 2) return [...others, { ...drawn(random, directory.path), ...(movedFrom && { movedFrom }) }]
    // Back to where it came from, or where it is for good.
    if (what === 3) return [...others, movedFrom && random.chance(0.5) ? { ...rest, path: movedFrom } : rest]
    return fresh ? [...others, { ...rest, path: fresh, movedFrom: directory.path }] : others
  })()
  const left = free.filter((path) => !claimed(next).includes(path))
  return random.chance(0.3) ? change(random, next, left) : next
}

function drawn(random: Random, path: Path): Directory {
  const [first, second] = [secrets[random.below(4)] ?? 's0', secrets[random.below(4)] ?? 's1']
  const several = first === second ? [first] : [first, second]
  return {
    path,
    contents: random.chance(0.25) ? (random.chance(0.5) ? 'x' : 'y') : several.slice(0, 1 + random.below(2)),
    onDrop: random.chance(0.5) ? 'remove' : 'keep',
    ...(random.chance(0.5) ? { history: 0 } : { history: 2, ...(random.chance(0.5) && { ages: true }) }),
    ...(random.chance(0.4) && { adopt: random.chance(0.8) ? 'replace' : true }),
    ...(random.chance(0.3) && { hook: true }),
    ...(random.chance(0.15) && { check: true }),
  }
}

/** Lives that are a little shorter, in the order in which to try them. */
export function shorter(steps: readonly Step[]): (readonly Step[])[] {
  const less = steps.map((_, index) => steps.toSpliced(index, 1))
  const plainer = steps.flatMap((one, index) => {
    if (one.step !== 'configure') return []
    return one.directories.map((_, at) =>
      steps.toSpliced(index, 1, { ...one, directories: one.directories.toSpliced(at, 1) }),
    )
  })
  return [...less, ...plainer].filter(isValid)
}
