/** What the program does while the disk is logged. */
import { agentScenario } from './agent-scenario.js'
import { killedScenario } from './killed-scenario.js'
import { type Life, stepsOf } from './lives.js'
import type { Scenario } from './scene.js'
import type { Target } from './targets.js'

/** One process publishes these generations of all its targets, one after the other. */
function inTurn(name: string, targets: readonly Target[], generations: number): Scenario {
  return {
    name,
    targets,
    async run({ publish, actor }) {
      const process = actor()
      for (let generation = 1; generation <= generations; generation++) {
        await publish(process, targets, generation)
      }
      await process.end()
    },
  }
}

/** One process takes these targets through their lives, step by step. */
function lifeOf(name: string, targets: readonly (Target & { readonly life: Life })[]): Scenario {
  return {
    name,
    targets,
    most: 16,
    async run({ publish, actor }) {
      const process = actor()
      const steps = Math.max(...targets.map(({ life }) => stepsOf(life)))
      for (let step = 1; step < steps; step++) {
        for (const target of targets) if (step < stepsOf(target.life)) await publish(process, [target], step)
      }
      await process.end()
    },
  }
}

/** Pairs that change places a few times, in one directory and across two. */
function exchanges(pairs: readonly (readonly [string, string])[], times: number): Scenario {
  const twins = pairs.map(([one, two]) => {
    const twin = (path: string, other: string): Target => ({
      path,
      kind: 'directory',
      content: 'few',
      twin: other,
    })
    return [twin(one, two), twin(two, one)] as const
  })
  return {
    name: 'exchange()',
    targets: twins.flat(),
    async run({ publish, exchange, actor }) {
      const process = actor()
      for (const [index, [one, two]] of twins.entries()) {
        const generations = [2 * index + 1, 2 * index + 2] as const
        await publish(process, [one], generations[0])
        await publish(process, [two], generations[1])
        for (let time = 1; time <= times; time++) {
          const [a, b] = generations
          await exchange(process, [one, two], time % 2 === 1 ? [b, a] : [a, b])
        }
      }
      await process.end()
    },
  }
}

const directory = (path: string, content: 'many' | 'few' = 'many'): Target => ({
  path,
  kind: 'directory',
  content,
})
const owner = { uid: 1234, gid: 4321 }

export const scenarios: readonly Scenario[] = [
  inTurn('first publication, new ancestors', [directory('new/ancestors/of/target')], 1),
  inTurn('replacement', [{ ...directory('certs/target'), owner }], 4),
  inTurn(
    'batch of 4 in 3 parents',
    [directory('one/a', 'few'), directory('one/b', 'few'), directory('two/c'), directory('new/three/d', 'few')],
    3,
  ),
  inTurn('replaceFile', [{ path: 'manifests/pod.yaml', kind: 'file', content: 'few', owner }], 4),
  inTurn('symlink mode', [{ path: 'volume/target', kind: 'symlink', content: 'many' }], 4),
  inTurn('static pod: install, link, prune', [{ path: 'manifests/web-pod.yaml', kind: 'pod', content: 'few' }], 3),
  exchanges(
    [
      ['pair/one', 'pair/two'],
      ['left/one', 'right/two'],
    ],
    3,
  ),
  lifeOf('history and rollback', [{ ...directory('certs/target', 'few'), life: 'history' }]),
  lifeOf('removal', [
    { ...directory('certs/target', 'few'), life: 'removal' },
    { path: 'volume/target', kind: 'symlink', content: 'few', life: 'removal' },
  ]),
  lifeOf('adoption', [{ ...directory('certs/target', 'few'), life: 'adoption' }]),
  lifeOf('relocation', [{ ...directory('is/tls', 'few'), life: 'relocation' }]),
  killedScenario,
  agentScenario,
]
