import { compound, histories, model, type Mutation, mutation, ownTest, ownTestOfRoot } from './mutation.js'

const real = ownTestOfRoot('durable/path/kept-attributes')
const lists = model('ACLs', 'power cut')
const setLast = "await setExtended(fs, descriptor, extended, 'after', shown)"

/** ACLs and user attributes, and in which order they are set. */
export const attributes: readonly Mutation[] = [
  mutation(
    'ACLs and user attributes are not kept',
    'path/kept-attributes.ts',
    'return withMode(old.extended, mode)',
    'return undefined',
    lists,
    real,
    histories,
  ),
  mutation(
    'what is new inherits nothing',
    'path/kept-attributes.ts',
    'if (inherited === undefined) return undefined\n    const list',
    'if (inherited !== undefined) return undefined\n    const list',
    lists,
    real,
  ),
  compound(
    'the ACL before the mode',
    [
      ['path/kept-attributes.ts', `  ${setLast}\n`, ''],
      ['path/kept-attributes.ts', "extended, 'before', shown)", `extended, 'before', shown)\n  ${setLast}`],
    ],
    lists,
    real,
  ),
  compound(
    'the ACL after the fsync',
    [
      [
        'path/kept-attributes.ts',
        setLast,
        ";((globalThis as { late?: (() => Promise<void>)[] }).late ??= []).push(() => setExtended(fs, descriptor, extended, 'after', shown))",
      ],
      [
        'publish/publish.ts',
        '// 6. Exchange.',
        'for (const late of (globalThis as { late?: (() => Promise<void>)[] }).late?.splice(0) ?? []) await late().catch(() => undefined)',
      ],
    ],
    lists,
  ),
  mutation(
    'attributes that cannot be kept are left out',
    'path/kept-attributes.ts',
    'throw notKept(path, name, error)',
    'void notKept(path, name, error)',
    real,
    model('ACLs', 'fault'),
  ),
  mutation(
    'a change of attributes is not reported',
    'keep/clean.ts',
    'if (attributes === current.attributes) return',
    'return',
    ownTest('durable/attribute-changes'),
  ),
  mutation(
    'a change of attributes is reported each time',
    'keep/clean.ts',
    'append(area, names.record(current.sequence), { attributes })',
    'Promise.resolve()',
    ownTest('durable/attribute-changes'),
  ),
  mutation(
    'a mode that an administrator set is drift',
    'record/record.ts',
    'if (keepsAttributes !== true || ',
    'if (keepsAttributes !== undefined || ',
    ownTest('durable/keep-attributes'),
  ),
  mutation(
    'a set-user-ID bit is kept',
    'publish/planned-tree.ts',
    'if ((entry.mode & ~most) === 0) return',
    'return',
    ownTest('durable/keep-attributes'),
  ),
  mutation(
    'a mask is read as the mode',
    'path/kept-attributes.ts',
    'return modeByList(extended?.get(accessAttribute), mode)',
    'return mode',
    lists,
    real,
    histories,
  ),
  mutation(
    'what is inherited from above stays',
    'path/kept-attributes.ts',
    'for (const name of inherited?.keys() ?? [])',
    'for (const name of [] as string[])',
    real,
  ),
  mutation(
    'a default ACL opens what the mode closes',
    'path/access-list.ts',
    'tag === mask ? permissions & (mode >> 3) : permissions',
    'tag === mask ? permissions : permissions',
    ownTest('durable/path/access-list'),
    lists,
  ),
  mutation(
    'user attributes after the mode',
    'path/kept-attributes.ts',
    "if (name.startsWith('user.') !== (when === 'before')) continue",
    "if (when === 'before') continue",
    real,
  ),
]
