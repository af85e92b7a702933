/**
 * Programs of this machine in a container of runc: the machine's own files at their own paths, read-only but for one directory, root without
 * capabilities, as the pods of deploy/ are, and a seccomp profile.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Confinement {
  /** A profile of seccomp as the runtime's specification has it. */
  readonly seccomp: object
  /** Where the program may write. Its bundle lies there, too. */
  readonly directory: string
}

/** Starts a program; runc forwards signals to it, and ends with its exit code. */
export function startConfined({ seccomp, directory }: Confinement, args: readonly string[]): ChildProcess {
  const bundle = mkdtempSync(join(directory, 'bundle-'))
  const root = join(bundle, 'rootfs')
  mkdirSync(root)
  const mounts = readdirSync('/').flatMap((name) => {
    if (lstatSync(`/${name}`).isSymbolicLink()) symlinkSync(readlinkSync(`/${name}`), join(root, name))
    return lstatSync(`/${name}`).isDirectory() && !['proc', 'sys'].includes(name) ? [bind(`/${name}`, 'ro')] : []
  })
  // The process IDs are the machine's, as with `hostPID: true`.
  const proc = { destination: '/proc', type: 'proc', source: 'proc' }
  const configuration = {
    ociVersion: '1.0.2',
    process: {
      args,
      cwd: directory,
      env: [`PATH=${process.env['PATH'] ?? ''}`, `HOME=${directory}`, `TMPDIR=${directory}`],
      user: { uid: 0, gid: 0 },
      capabilities: {},
      noNewPrivileges: true,
      terminal: false,
    },
    root: { path: 'rootfs' },
    mounts: [...mounts, proc, bind(directory, 'rw')],
    linux: { namespaces: [{ type: 'mount' }], seccomp },
  }
  writeFileSync(join(bundle, 'config.json'), JSON.stringify(configuration))
  const name = `holdfast-test-${process.pid}-${bundle.slice(-6)}`
  return spawn('runc', ['--root', join(directory, 'runc'), 'run', '--bundle', bundle, name], { stdio: 'pipe' })
}

function bind(path: string, access: 'ro' | 'rw'): object {
  return { destination: path, type: 'bind', source: path, options: ['rbind', access] }
}
