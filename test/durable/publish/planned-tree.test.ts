/** Whose ACLs, user attributes and modes stay: the rule, as a table. */
import t from 'tap'
import { accessAttribute } from '../../../src/durable/path/kept-attributes.js'
import { trust } from '../../../src/durable/publish/planned-tree.js'

const head = { type: 'directory', gid: 0, sha256: '' } as const
const lists = new Map([[accessAttribute, new Uint8Array()]])

/** Of `sub/a`, which user 7 owns: this process is user 5's. */
function trusts({
  next = 7,
  last = 0,
  uid = 7,
  parent = { uid: 0, mode: 0o755 },
  target = { uid: 0, mode: 0o755 },
  sub = {},
  between = [],
}: {
  next?: number
  last?: number
  uid?: number
  parent?: { uid: number; mode: number }
  target?: { uid: number; mode: number }
  sub?: { mode?: number; extended?: ReadonlyMap<string, Uint8Array> }
  between?: { mode: number }[]
}): boolean {
  const old = [
    { ...head, path: '', ...target },
    { ...head, path: 'sub', uid: 7, mode: 0o755, ...sub },
  ]
  const isTrusted = trust({
    fs: { user: { uid: 5, gid: 5 } },
    parent,
    between,
    old,
    last: [{ path: 'sub/a', uid: last }],
  })
  return isTrusted('sub/a', uid, next)
}

await t.test('what an entry has stays where nobody but root, this user, or its next owner can have set it', (t) => {
  const sticky = { uid: 0, mode: 0o1777 }
  const rows: [string, boolean, Parameters<typeof trusts>[0]][] = [
    ["root's", true, { uid: 0, next: 8, parent: sticky }],
    ["this process's", true, { uid: 5, next: 8, parent: sticky }],
    ["a former owner's", false, { next: 8, last: 7 }],
    ['of whom root has given it to', true, {}],
    ['of a user who may have made the target, in a sticky directory', false, { parent: sticky }],
    ['whom the last publication gave it to there', true, { parent: sticky, last: 7 }],
    ['in a directory of their own', false, { parent: { uid: 7, mode: 0o755 } }],
    ["in a directory of this process's", true, { parent: { uid: 5, mode: 0o755 } }],
    ['in a target that a group may write to', false, { target: { uid: 0, mode: 0o775 } }],
    ['in a directory of the target that all may write to', false, { sub: { mode: 0o777 } }],
    ['in one whose ACL may let others write', false, { sub: { extended: lists } }],
    ['in one with other attributes', true, { sub: { extended: new Map([['user.note', new Uint8Array()]]) } }],
    ['in a generation, in a target of links that others may write to', false, { between: [sticky] }],
  ]
  for (const [what, stays, scene] of rows) t.equal(trusts(scene), stays, what)
  t.end()
})
