import { compound, type Mutation, mutation, ownTest } from './mutation.js'

const opening = ownTest('crash/file-system/opening')

/** How things are opened and renamed: what no crash shows, but somebody who was there before. */
export const openings: readonly Mutation[] = [
  mutation('no O_EXCL', 'posix/file-system.ts', 'O_CREAT | O_EXCL | O_NOFOLLOW', 'O_CREAT | O_NOFOLLOW', opening),
  mutation(
    'links are followed to directories',
    'posix/file-system.ts',
    'O_RDONLY | O_DIRECTORY | O_NOFOLLOW)',
    'O_RDONLY | O_DIRECTORY)',
    ownTest('durable/open-path'),
  ),
  mutation(
    'openat2 follows links to directories',
    '/native/open.ts',
    'openFlags, resolveNoSymlinks | resolveNoMounts)',
    'openFlags, resolveNoMounts)',
    opening,
  ),
  mutation(
    'openat2 crosses mounts',
    '/native/open.ts',
    'openFlags, resolveNoSymlinks | resolveNoMounts)',
    'openFlags, resolveNoSymlinks)',
    ownTest('native/open'),
  ),
  mutation(
    'links are followed to files',
    'posix/file-system.ts',
    'O_RDONLY | O_NOFOLLOW | O_NONBLOCK)',
    'O_RDONLY | O_NONBLOCK)',
    ownTest('durable/open-path'),
  ),
  mutation(
    'links are followed to append',
    'posix/file-system.ts',
    'O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK)',
    'O_RDWR | O_APPEND | O_NONBLOCK)',
    opening,
  ),
  mutation(
    'links are followed to locks',
    'posix/file-system.ts',
    'const flags = O_NOFOLLOW | O_NONBLOCK',
    'const flags = O_NONBLOCK',
    opening,
  ),
  mutation(
    'a fifo is waited for',
    'posix/file-system.ts',
    'O_RDONLY | O_NOFOLLOW | O_NONBLOCK)',
    'O_RDONLY | O_NOFOLLOW)',
    opening,
  ),
  compound(
    'links are followed in paths',
    [['/native/open.ts', 'const resolveNoSymlinks = 0x04', 'const resolveNoSymlinks = 0']],
    opening,
  ),
  mutation(
    'links are followed in paths, without openat2',
    'posix/open-path.ts',
    'O_RDONLY : O_PATH) | O_DIRECTORY | O_NOFOLLOW',
    'O_RDONLY : O_PATH) | O_DIRECTORY',
    ownTest('durable/open-path'),
  ),
  compound('no O_CLOEXEC', [['/native/open.ts', ' | closeOnExec)', ')']], opening),
  compound('no RENAME_NOREPLACE', [['/native/rename.ts', 'noreplace: 1', 'noreplace: 0']], opening),
  compound('no RENAME_EXCHANGE', [['/native/rename.ts', 'exchange: 2', 'exchange: 0']], opening),
  compound(
    'no flock',
    [['/native/flock.ts', 'if (result === 0) return true', 'return true']],
    ownTest('durable/path/lock'),
  ),
]
