/** The compared programs: each through its own code, at the version named here or in the lock file of its toolchain. */
import type { Toolchain } from './toolchains.js'

export interface Peer {
  readonly name: string
  readonly version: string
  readonly toolchain: Toolchain
  /** What a reader sees change in one step, by its code. */
  readonly step: 'directory' | 'each file' | 'nothing'
  /** It prepares something before its first order. */
  readonly prepares?: boolean
  /** How it publishes, in a few words for the table. */
  readonly how: string
}

export const peers: readonly Peer[] = [
  {
    name: 'holdfast',
    version: 'this tree',
    toolchain: 'own',
    step: 'directory',
    how: 'stages all, one barrier, one exchange, one barrier',
  },
  {
    name: 'library-go',
    version: '93ac9206ae34',
    toolchain: 'library-go',
    step: 'directory',
    how: 'each file synced, its directory after each, one exchange',
  },
  {
    name: 'AtomicWriter',
    version: 'k8s.io/kubernetes 1.35.4',
    toolchain: 'go',
    step: 'directory',
    how: 'a new directory behind a symbolic link, nothing synced',
  },
  {
    name: 'git-sync',
    version: '4.7.1',
    toolchain: 'git-sync',
    step: 'directory',
    prepares: true,
    how: 'a worktree behind a symbolic link, nothing synced but by git',
  },
  {
    name: 'shell',
    version: 'coreutils',
    toolchain: 'own',
    step: 'nothing',
    how: 'cp, sync -f, mv twice, sync -f',
  },
  {
    name: 'renameio',
    version: '2.0.2',
    toolchain: 'go',
    step: 'each file',
    how: 'each file synced and renamed, one after the other',
  },
  {
    name: 'atomic-write-file',
    version: '0.3.1',
    toolchain: 'rust',
    step: 'each file',
    how: 'each file synced, renamed, its directory synced',
  },
  {
    name: 'write-file-atomic',
    version: '7.0.0',
    toolchain: 'npm',
    step: 'each file',
    how: 'each file synced and renamed, all at once',
  },
  {
    name: 'atomically',
    version: '2.1.1',
    toolchain: 'npm',
    step: 'each file',
    how: 'each file synced and renamed, all at once',
  },
  {
    name: 'k8s-sidecar',
    version: '2.9.0',
    toolchain: 'k8s-sidecar',
    step: 'nothing',
    how: 'each file overwritten in its place, nothing synced',
  },
]
