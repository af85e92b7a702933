/** Pods with one mistake each: of each sound pod, each field that it has or may have × each kind of mistake. */
import fc from 'fast-check'
import { podTypes } from '../../../src/static-pods/pod/pod-types.js'
import { asMap } from '../../../src/static-pods/json.js'
import { sound } from './sound-parts.js'

export interface Mistake {
  /** Of the pod that was sound. */
  readonly base: string
  /** As in `spec.containers[0].image`. */
  readonly field: string
  /** The value, or what was done. */
  readonly kind: string
  readonly pod: unknown
}

type Path = readonly (string | number)[]

const long = (length: number, letter = 'x') => letter.repeat(length)

const texts: readonly string[] = [
  ...[
    '',
    ' ',
    'x',
    'X',
    'x_y',
    'a b',
    ' web',
    'a.b',
    'a/b',
    '-a',
    '/abs',
    '../up',
    'a/../b',
    '..data',
    '.',
    'a:b',
    '*',
    'é',
  ],
  ...[long(16), long(64), long(65), long(254), long(5000), '80', '1', '0', '-1', '70000', '1000000000000'],
  ...[
    'always',
    'Always',
    'Never',
    'None',
    'Unknown',
    'Localhost',
    'RuntimeDefault',
    'Unmasked',
    'Exists',
    'In',
    'Gt',
    'Equal',
  ],
  ...[
    'Bidirectional',
    'HostToContainer',
    'Enabled',
    'NoExecute',
    'ScheduleAnyway',
    'MountOption',
    'RestartAllContainers',
  ],
  ...[
    'ClusterFirst',
    'RestartContainer',
    'OnFailure',
    'HTTP',
    'UDP',
    'SIGKILL',
    'linux',
    'windows',
    'Apply',
    'TLS',
    'HTTP2',
  ],
  ...[
    '10.0.0.1',
    '010.0.0.1',
    '10.0.0.300',
    'fe80::1%eth0',
    '::ffff:10.0.0.1',
    'web',
    'scratch',
    'http',
    'metadata.name',
  ],
  ...[
    "metadata.labels['a b']",
    "metadata.labels['']",
    'metadata.annotations',
    'spec.host',
    'status.phase',
    'limits.memory',
  ],
  ...['limits.cpu', 'requests.hugepages-2Mi', 'net.core.somaxconn', 'kernel.sem', 'fs.mqueue.msg_max', 'net/ipv4/x'],
  ...[
    'runtime/default',
    'localhost/a',
    'localhost/../a',
    'localhost//a',
    'localhost/profiles/a.json',
    'unconfined',
    'DOMAIN\\',
    'a\\b\\c',
    'v1/Event',
    'a/b/c',
    'orphan',
  ],
  ...[
    'CAP_SYS_ADMIN',
    'cpu',
    'hostname',
    'other',
    'Event',
    'foregroundDeletion',
    'eui.02004567A425678D',
    'kubernetes',
    'a\u0007',
  ],
]
const integers = [-1, 0, 1, 2, 101, 256, 512, 600, 1024, 65_536, 2_147_483_647]
const long64 = [2_147_483_648, 4_294_967_296]
const quantities = ['-1', '0', '1m', '500m', '1', '3', '1Gi', '3Mi', '64Mi', '100Gi', '1500', '2e3']
const keys = [
  ...[
    'a b',
    '',
    'a/b/c',
    long(64),
    '-a',
    'A.b/c',
    'a/',
    '/a',
    'kubernetes.io/x',
    'x.kubernetes.io/y',
    'k8s.io/x',
    'cpu',
    'memory',
  ],
  ...[
    'mem',
    'storage',
    'pods',
    'requests.cpu',
    'requests.a.b/c',
    'hugepages-2Mi',
    'hugepages-3Mi',
    'hugepages-x',
    'hugepages-',
  ],
  ...['hash', 'hugepages-1m', 'nvidia.com/gpu', 'example.com/fpga', 'ephemeral-storage', 'kubernetes.io/batch-cpu'],
  ...['seccomp.security.alpha.kubernetes.io/pod', 'container.seccomp.security.alpha.kubernetes.io/web'],
  ...['container.apparmor.security.beta.kubernetes.io/web', 'container.apparmor.security.beta.kubernetes.io/other'],
  ...[
    'scheduler.alpha.kubernetes.io/tolerations',
    'controller.kubernetes.io/pod-deletion-cost',
    'kubernetes.io/config.mirror',
  ],
]
const many = 300

const scalars: Readonly<Record<string, readonly unknown[]>> = {
  text: texts,
  flag: [true, false],
  int32: integers,
  int64: [...integers, ...long64],
  intOrText: [...integers, ...texts],
  quantity: quantities,
  time: ['2001-01-01T00:00:00Z'],
  any: [{}],
}

const fieldsOf = new Map(
  Object.entries(podTypes).map(([type, fields]) => [
    type,
    Object.entries(fields).flatMap(([of, names]) => names.split(' ').map((name) => [name, of] as const)),
  ]),
)

interface Node {
  readonly path: Path
  readonly type: string
  readonly value: unknown
}

/** Each part of the pod, with its type. */
function* nodes(value: unknown, type: string, path: Path): Generator<Node> {
  yield { path, type, value }
  const inner = type.slice(0, -2)
  if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* nodes(item, inner, [...path, index])
  else if (type.endsWith('{}'))
    for (const [key, item] of Object.entries(asMap(value) ?? {})) yield* nodes(item, inner, [...path, key])
  else
    for (const [name, of] of fieldsOf.get(type) ?? []) {
      const field = asMap(value)?.[name]
      if (field !== undefined) yield* nodes(field, of, [...path, name])
    }
}

/** What sound pods have in a field: `Container.image`. */
const samples = new Map<string, unknown[]>()
for (const { pod } of sound) {
  for (const { type, value } of nodes(pod, 'Pod', []))
    for (const [name] of fieldsOf.get(type) ?? []) {
      const field = asMap(value)?.[name]
      const known = samples.get(`${type}.${name}`) ?? []
      if (field !== undefined && known.length < 3) samples.set(`${type}.${name}`, [...known, field])
    }
}

/** A value of a field that no sound pod has. */
function anyOf(type: string): unknown {
  if (type.endsWith('[]')) return [anyOf(type.slice(0, -2))]
  if (type.endsWith('{}')) return { key: anyOf(type.slice(0, -2)) }
  return scalars[type]?.[2] ?? scalars[type]?.[0] ?? {}
}

type Change = readonly [kind: string, path: Path, value: unknown]

/** Stands for a field that is taken away. */
const gone = Symbol('gone')

function* changesOf({ path, type, value }: Node): Generator<Change> {
  if (path.length > 0 && typeof path.at(-1) === 'string') yield ['gone', path, gone]
  const inner = type.slice(0, -2)
  if (Array.isArray(value)) {
    const all: readonly unknown[] = value
    yield ['an empty list', path, []]
    yield ['an item twice', path, [...all, all[0]]]
    yield ['an item of nothing', path, [...all, inner === 'text' ? '' : fieldsOf.has(inner) ? {} : 0]]
    yield [`${many} items`, path, Array.from({ length: many }, (_, n) => (inner === 'text' ? `x${n}` : (all[0] ?? n)))]
    yield ['without the first', path, all.slice(1)]
  } else if (type.endsWith('{}')) {
    yield ['an empty map', path, {}]
    for (const key of keys)
      yield [`the key ${key.slice(0, 60)}`, [...path, key], inner === 'quantity' ? '2' : 'localhost/a']
    if (inner === 'text') yield ['much', [...path, 'a'], long(300_000)]
    if (inner === 'text')
      yield ['tolerations', [...path, 'scheduler.alpha.kubernetes.io/tolerations'], '[{"key":"a b"}]']
  } else if (fieldsOf.has(type)) {
    for (const [name, of] of fieldsOf.get(type) ?? []) {
      if (asMap(value)?.[name] !== undefined) continue
      for (const sample of samples.get(`${type}.${name}`) ?? [anyOf(of)]) yield ['added', [...path, name], sample]
      for (const scalar of scalars[of] ?? []) yield [JSON.stringify(scalar).slice(0, 60), [...path, name], scalar]
    }
  } else {
    for (const scalar of scalars[type] ?? []) yield [JSON.stringify(scalar).slice(0, 60), path, scalar]
    if (typeof value === 'string' && value !== '') {
      const [first = ''] = value
      const other = first === first.toLowerCase() ? first.toUpperCase() : first.toLowerCase()
      yield ['the other case', path, other + value.slice(1)]
      yield ['a space behind', path, `${value} `]
    }
  }
}

function changed(pod: unknown, path: Path, value: unknown): unknown {
  const [step, ...others] = path
  if (step === undefined) return value
  if (Array.isArray(pod))
    return pod.map((item: unknown, index) => (index === step ? changed(item, others, value) : item))
  const map = asMap(pod) ?? {}
  if (others.length > 0 || value !== gone) return { ...map, [step]: changed(map[step], others, value) }
  return Object.fromEntries(Object.entries(map).filter(([name]) => name !== step))
}

const nameOf = ([first = '', ...others]: Path): string =>
  `${first}${others.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('')}`

/** Every mistake, as functions that make it: the pods together are large. */
const all: readonly (() => Mistake)[] = sound.flatMap(({ what, pod }) =>
  [...nodes(pod, 'Pod', [])].flatMap((node) =>
    [...changesOf(node)]
      // A pod without a status is a manifest's, and these make it none.
      .filter(([, path]) => !['status', 'kind', 'apiVersion'].includes(String(path[0])) && path.length > 0)
      .map(([kind, path, value]) => () => ({ base: what, field: nameOf(path), kind, pod: changed(pod, path, value) })),
  ),
)

export const mistakes = all.length

/** As many as that, drawn among all by the seed; all of them where there are no more. */
export function drawMistakes(seed: number, count: number): Mistake[] {
  if (count >= all.length) return all.map((make) => make())
  return fc.sample(fc.constantFrom(...all), { seed, numRuns: count }).map((make) => make())
}
