/** The values of a request, which mistake its error names first, and the plan that comes of it. */
import { Readable } from 'node:stream'
import t from 'tap'
import { checkMode, checkOwner } from '../../../src/durable/publish/request.js'
import { checkPath, checkTarget } from '../../../src/durable/path/names.js'
import { planFor } from '../plan.js'

const long = (length: number): string => 'ä'.repeat(Math.floor(length / 2)) + 'x'.repeat(length % 2)
const unsafe = (value: unknown): never => value as never

/** A plan; nothing is planned where the request is refused. */
function planned(files: Parameters<typeof planFor>[1]['files'], emptyDirectories?: readonly string[]) {
  const plan = answer(() => planFor('/t', { files, ...(emptyDirectories && { emptyDirectories }) }))
  return typeof plan === 'object' ? (plan as ReturnType<typeof planFor>) : { ...nothing, refused: true }
}

const nothing = { target: '', planned: [], mode: 0, owner: undefined } satisfies ReturnType<typeof planFor>

/** The answer, or the message of the error. */
function answer(ask: (() => unknown) | undefined): unknown {
  try {
    return ask?.()
  } catch (error) {
    return (error as Error).message
  }
}

await t.test('the error for a request names the first of two mistakes', async (t) => {
  const refused: [() => unknown, string][] = [
    [() => planFor('/', { files: {}, mode: -1, fileMode: -1 }), 'mode must be an integer from 0 to 0o7777, not -1'],
    [
      () => planFor('/', { files: unsafe(5), fileMode: unsafe('644') }),
      'fileMode must be an integer from 0 to 0o7777, not "644"',
    ],
    [() => planFor('/', { files: unsafe(5) }), 'files must be an object: relative path to content'],
    [
      () => planFor('/', { files: { a: { content: unsafe(5), mode: -1 }, '': '' } }),
      'the content of "a" must be a string, a Uint8Array, { path }, or a stream of strings or Uint8Arrays',
    ],
    [
      () => planFor('/', { files: { a: { content: '', mode: 0o10000 }, '': '' } }),
      'files["a"].mode must be an integer from 0 to 0o7777, not 4096',
    ],
    [() => planFor('/', { files: { '': unsafe(5) } }), 'files: a path is empty'],
    [() => planFor('/', { files: { '/a\0\ud800': '' } }), 'files: "/a\\u0000\\ud800" holds a NUL byte'],
    [
      () => planFor('/', { files: { '/\ud800': '' } }),
      'files: "/\\ud800" holds half of a surrogate pair, which is not valid text',
    ],
    [
      () => planFor('/', { files: { '/..': '' } }),
      'files: "/.." starts or ends with a slash: paths are relative to the target',
    ],
    [
      () => planFor('/', { files: { [`a/../${long(256)}`]: '' } }),
      `files: "a/../${long(256)}" has the part ".."; leave it out`,
    ],
    [
      () => planFor('/', { files: { [`${long(256)}/..`]: '' } }),
      `files: "${long(256)}/.." has a part longer than 255 bytes`,
    ],
    [
      () => planFor('/', { files: { a: '' }, emptyDirectories: ['a', '/'] }),
      'files: "/" starts or ends with a slash: paths are relative to the target',
    ],
    [() => planFor('/', { files: { a: '' }, emptyDirectories: ['a'] }), 'files: "a" is both a file and a directory'],
    [() => planFor('/', { files: { '': '' }, emptyDirectories: ['/'] }), 'files: a path is empty'],
    [() => planFor('/', { files: {}, owner: { uid: -1, gid: -1 } }), 'the root directory cannot be replaced'],
    [
      () => planFor('/a', { files: {}, owner: { uid: 1.5, gid: -1 } }),
      'owner.uid must be an integer from 0 to 4294967294, not 1.5',
    ],
    [() => checkOwner({ uid: -1, gid: 0 }), 'owner.uid must be an integer from 0 to 4294967294, not -1'],
    [() => checkOwner({ uid: 0, gid: 0.5 }), 'owner.gid must be an integer from 0 to 4294967294, not 0.5'],
    [
      () => checkOwner({ uid: 0, gid: 0xffffffff }),
      'owner.gid must be an integer from 0 to 4294967294, not 4294967295',
    ],
    [() => checkMode('mode', Number.NaN), 'mode must be an integer from 0 to 0o7777, not NaN'],
    [() => checkMode('mode', unsafe('0755')), 'mode must be an integer from 0 to 0o7777, not "0755"'],
    [() => checkPath(unsafe(null)), 'a path must be a string, not null'],
    [() => checkPath(unsafe(5)), 'a path must be a string, not number'],
    [
      () => checkPath(unsafe(new URL('file:///a'))),
      'a path must be a string, not a URL: use fileURLToPath of node:url',
    ],
    [() => checkPath(''), 'the path is empty'],
    [() => checkPath('\0'), 'the path holds a NUL byte'],
    [() => checkTarget(unsafe(undefined)), 'a path must be a string, not undefined'],
    [() => checkTarget(`/${long(256)}/..`), `the target "/${long(256)}/.." must end in a name, not in ".."`],
    [() => checkTarget('/a/.'), 'the target "/a/." must end in a name, not in "."'],
    [() => checkTarget('///'), 'the root directory cannot be replaced'],
    [() => checkTarget(`/${long(256)}`), 'the target name is longer than 255 bytes'],
    [
      () => planFor('/a/.holdfast-0123456789abcdef.lock', { files: {} }),
      'the target "/a/.holdfast-0123456789abcdef.lock" has a name that holdfast reserves for its own files: choose another',
    ],
  ]
  // An error in its place may be V8's for a defect, which would say nothing of the mistake.
  t.strictSame(
    refused.map(([, message]) => message).filter((message, index) => answer(refused[index]?.[0]) !== message),
    [],
    'mistakes of which something else is said',
  )
})

await t.test('the limits themselves are allowed', async (t) => {
  const name = long(255)
  t.equal(
    answer(() => checkMode('mode', 0)),
    0,
  )
  t.equal(
    answer(() => checkMode('mode', 0o7777)),
    0o7777,
  )
  t.same(
    answer(() => checkOwner({ uid: 0, gid: 0xfffffffe })),
    { uid: 0, gid: 0xfffffffe },
  )
  t.equal(
    answer(() => checkTarget(`/a/${name}//`)),
    `/a/${name}`,
  )
  t.equal(
    answer(() => checkTarget('/a/./b/../c')),
    '/a/c',
  )
  t.match(
    answer(() => planFor('/.holdfast-0123456789abcdef0', { files: {} })),
    { target: '/.holdfast-0123456789abcdef0' },
  )
  t.match(
    answer(() => planFor(`/${name}`, { files: { [name]: '' } })),
    { target: `/${name}`, planned: [{ path: '' }, { path: name }] },
  )
})

await t.test('a plan is complete, in byte order, with all directories above a file', async (t) => {
  const content = Uint8Array.of(1)
  const files = {
    'b/\u{10000}': 'x',
    'b/\uffff': content,
    'b/c/d': { content: 'y', mode: 0 },
    a: { content, mode: undefined },
  }
  const plan = planned(files, ['e/f', 'b'])
  t.strictSame(
    plan.planned.map(({ path, content, mode }) => [
      path,
      content && Buffer.from(unsafe(content)).toString('latin1'),
      mode,
    ]),
    [
      ['', undefined, 0o755],
      ['a', '\x01', 0o600],
      ['b', undefined, 0o755],
      ['b/c', undefined, 0o755],
      ['b/c/d', 'y', 0],
      ['b/\uffff', '\x01', 0o600],
      ['b/\u{10000}', 'x', 0o600],
      ['e', undefined, 0o755],
      ['e/f', undefined, 0o755],
    ],
  )
  t.match(plan, { target: '/t', mode: 0o755, owner: undefined })
  t.match(planFor('/t', { files: { a: '' }, mode: 0o700, fileMode: 0o640, owner: { uid: 1, gid: 2 } }), {
    mode: 0o700,
    owner: { uid: 1, gid: 2 },
    planned: [
      { path: '', mode: 0o700 },
      { path: 'a', mode: 0o640 },
    ],
  })
})

await t.test('a file is its content, or content with a mode: of bytes, of a path, of a stream', async (t) => {
  const path = { path: '/source' }
  const stream = Readable.from([])
  for (const content of ['text', Uint8Array.of(1), path, stream]) {
    t.match(
      answer(() => planFor('/t', { files: { a: content, b: { content, mode: 0o640 } } })),
      { planned: [{ path: '' }, { mode: 0o600 }, { mode: 0o640 }] },
    )
  }
})
