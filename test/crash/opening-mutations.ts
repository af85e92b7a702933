import { without, becomes, keep } from './changes.js'
import { caught, ownTest, type Mutation } from './mutation.js'

/** How holdfast opens and renames: faults that no crash shows, but an earlier foreign file does. */
export const openings: readonly Mutation[] = [
  ...caught([ownTest('opening')], {
    'no O_EXCL': without('NodeFileSystem.createFile', 'O_EXCL'),
    'openat2 follows links to directories': without('openOnSameMount', 'resolveNoSymlinks'),
    'links are followed to append': without('NodeFileSystem.openAppend', 'O_NOFOLLOW'),
    'links are followed to locks': without('NodeFileSystem.openLock', 'O_NOFOLLOW'),
    'a fifo is waited for': without('NodeFileSystem.openFile', 'O_NONBLOCK'),
    'links are followed in paths': becomes(0, 'resolveNoSymlinks', "'4'"),
    'no O_CLOEXEC': without('howToOpen', 'closeOnExec'),
    'no RENAME_NOREPLACE': becomes(0, 'flags', "'1'"),
    'no RENAME_EXCHANGE': becomes(0, 'flags', "'2'"),
  }),
  ...caught([ownTest('open-path')], {
    'links are followed to directories': without('NodeFileSystem.openDirectory', 'O_NOFOLLOW'),
    'links are followed to files': without('NodeFileSystem.openFile', 'O_NOFOLLOW'),
    'links are followed in paths, without openat2': without('walkNoSymlinks', 'O_NOFOLLOW'),
  }),
  ...caught([ownTest('durable/calls'), ownTest('durable/interrupted-calls')], {
    'links of other users are followed on the way to a target': becomes(true, 'isTrusted', '&&'),
  }),
  ...caught([ownTest()], {
    'openat2 crosses mounts': without('openOnSameMount', 'resolveNoMounts'),
  }),
  ...caught([ownTest('lock')], {
    'no flock': keep('tryLock', 'return 1/2'),
  }),
]
