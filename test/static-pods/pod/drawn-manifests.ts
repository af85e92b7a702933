/** Manifests with one value in one field of a Pod, as an author may have written it there. */
import { podTypes } from '../../../src/static-pods/pod/pod-types.js'

export interface DrawnManifest {
  readonly text: string
  /** The pod's, unless it is this field that was drawn. */
  readonly uid: string
  /** The field's value, as it is written. */
  readonly value: string
  /** Its type. */
  readonly type: string
  readonly path: readonly (string | number)[]
}

const integers = [
  ...'8080 0 -1 +1 0644 0o644 0O7 0b101 0B1 -0b101 0x1F -0x10 1_000 0x_FF _1 1__0 08 0_ -0 2147483647'.split(' '),
  ...'2147483648 -2147483648 -2147483649 9007199254740993 -9007199254740993 9223372036854775807'.split(' '),
  ...'9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615'.split(' '),
  ...'18446744073709551616 123456789012345678901234567890'.split(' '),
]
const fractions = [
  ...'1.5 1.0 1e3 1e400 -1e400 .5 5. -.5 +.5 .5e400 09.5 1e21 1e-7 1e-400 -0.0 0.1234567890123456789'.split(' '),
  ...'.inf -.inf +.Inf .nan .NaN .Nan 1_0.5 ._5 1.2.3 1e 0x1p3'.split(' '),
]
const words = [
  ...['true', 'false', 'yes', 'no', 'on', 'off', 'y', 'n', 'Y', 'N', 'True', 'TRUE', 'tRUE', 'Yes', 'On', 'OFF'],
  ...['null', '~', 'Null', 'nULL', '', '""', "''", '"null"', 'text', '<<', '=', '.', '+'],
]
const dates = ['2001-01-01', '2001-1-1', '2001-01-01T00:00:00Z', '2001-01-01 00:00:00', '190:20:30', '22:22', '"10:20"']
const quoted = ['"8080"', "'on'", '"0.5"', '"1e3"', '"1e400"', '" 1 "', '"1Gi"', "'2001-02-30T00:00:00Z'", '"\\u0031"']
const quantities = [
  ...'100m 1Gi 1.5Gi 1e3m 1E 1Ei .5Ki'.split(' '),
  '1 Gi',
  ...'5.m 1K 1ki -1k 1e1000 m Ki 1e+'.split(' '),
]
const collections = ['[]', '{}', '[1]', '[a]', '{a: 1}', '{a: b}', '[[]]', '[{}]', '[~]', '{a: ~}']
const tagged = ['!!str 8080', '!!str', '!!int "8080"', '!!int 8', '!!float 1', '!!bool on', '!!null ""', '!!str on']

/** Values that people and programs write: more than a hundred scalars, and some that are none. */
export const values: readonly string[] = [
  ...integers,
  ...fractions,
  ...words,
  ...dates,
  ...quoted,
  ...quantities,
  ...collections,
  ...tagged,
]

/** Values of JSON, and some that JSON has not. */
export const jsonValues: readonly string[] = [
  ...['8080', '0', '-0', '-1', '1.0', '1e3', '1E400', '1e-400', '1.50', '2147483648', '9007199254740993', '1e21'],
  ...['9223372036854775808', '18446744073709551616', '0.1234567890123456789', '123456789012345678901234567890'],
  ...['true', 'false', 'null', '""', '"text"', '"8080"', '"1.5Gi"', '"2001-01-01T00:00:00Z"', '"\\ud83d\\ude00\\/"'],
  ...['[]', '{}', '[1]', '["a"]', '{"a":1}', '{"a":"b"}', '[{}]', '[null]', '{"a":null}', '{"a":1,"a":"b"}'],
  ...['on', '01', '+1', '.5', '1.', 'NaN', '0x1', "'a'", '', '[1,]', '"\t"'],
]

const lineEnds = ['\n', '\r\n', '\n\n', ' \n \t\n', '\\\n', '\\\n\n', '\\\r\n  \r\n', ' \\\n \t\\ ', '\\\\\n', '\\']

/** Quoted texts: a backslash before each character, numbers of characters that there are and are not, and lines that are folded. */
export const quotedTexts: readonly string[] = [
  ...Array.from({ length: 95 }, (_, index) => `"a\\${String.fromCharCode(32 + index)}b"`),
  ...['\t', 'é', '\u00a0', '😀'].map((character) => `"a\\${character}b"`),
  ...'x41 xe9 x4 x4g u0031 u20ac u12 ud83d\\ude00 ud83d udfff ud7ff ue000 ufeff ufffe u0000 x7f'
    .split(' ')
    .map((number) => `"\\${number}"`),
  ...'U0001f600 U0010ffff U00110000 U0000d800 UFFFFFFFF U0001F60'.split(' ').map((number) => `"a\\${number}"`),
  ...lineEnds.flatMap((end) => [`"a${end} b"`, `"${end} "`, `'a${end} b'`]),
  ...["'it''s'", "'\\n'", "'\\ud83d'", '"it\\\\\'s"', '"\\\\/"', '"8\\x30"', '"tru\\x65"', '"1\\x47i"'],
]

interface Field {
  readonly path: readonly (string | number)[]
  readonly type: string
}

/** Each field of a Pod, once for each way to it through at most eight others; lists and maps with one item. */
export const podFields: readonly Field[] = [...fieldsOf('Pod', [])]

function* fieldsOf(type: string, path: Field['path']): Generator<Field> {
  if (path.length > 0) yield { path, type }
  if (type.endsWith('[]')) yield* fieldsOf(type.slice(0, -2), [...path, 0])
  else if (type.endsWith('{}')) yield* fieldsOf(type.slice(0, -2), [...path, 'key'])
  else if (path.length < 8) {
    for (const [of, names] of Object.entries(podTypes[type] ?? {}))
      for (const name of names.split(' ')) yield* fieldsOf(of, [...path, name])
  }
}

type Tree = { [name: string]: Tree } | Tree[] | string

/** Stands for the value. */
const mark = '\0'

/** A pod that kubelet runs, with a uid by which the test knows kubelet's answer, and the mark at the path. */
function podWith(path: Field['path'], uid: string): Tree {
  const container = { name: 'web', image: 'web:1' }
  const pod: Tree = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `p-${uid}`, uid },
    spec: { containers: [container] },
  }
  const last = path.length - 1
  let at: Tree = pod
  for (const [index, step] of path.entries()) {
    const inner: Tree = index === last ? mark : typeof path[index + 1] === 'number' ? [] : {}
    if (Array.isArray(at)) at = at[0] = index === last || at[0] === undefined ? inner : at[0]
    else if (typeof at !== 'string') at = at[step] = index === last || at[step] === undefined ? inner : at[step]
  }
  const names = path.join('.')
  const [volume] = (pod.spec as { volumes?: Tree[] }).volumes ?? []
  if (typeof volume === 'object' && !names.endsWith('volumes.0.name')) (volume as Record<string, Tree>).name = 'data'
  return pod
}

/** In blocks at the first level, so that it is not taken for JSON. */
function asYaml(pod: Tree, value: string): string {
  const flow = (tree: Tree): string => {
    if (typeof tree === 'string') return tree === mark ? value : JSON.stringify(tree)
    if (Array.isArray(tree)) return `[${tree.map(flow).join(', ')}]`
    const fields = Object.entries(tree).map(([name, inner]) => `${name}: ${flow(inner)}`)
    return `{${fields.join(', ')}}`
  }
  return `${Object.entries(pod)
    .map(([name, inner]) => `${name}: ${flow(inner)}`)
    .join('\n')}\n`
}

function asJson(pod: Tree, value: string): string {
  return `${JSON.stringify(pod).replace(JSON.stringify(mark), () => value)}\n`
}

export function manifestWith(field: Field, value: string, form: 'YAML' | 'JSON', uid: string): DrawnManifest {
  const pod = podWith(field.path, uid)
  return { text: form === 'YAML' ? asYaml(pod, value) : asJson(pod, value), uid, value, ...field }
}
