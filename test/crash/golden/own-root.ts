/**
 * A process with a root of its own, so that a disk's absolute paths are those that its records, links and manifests name: an ext4 in memory,
 * with a second one at `/o`, and beside the disk's own names all that the machine's root has. Root only.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Only such a root has this file. */
const mark = '/.golden-root'

/** To be called before anything is laid or taken away below `/`. @throws Error in the machine's own root. */
export function refuseOtherRoots(): void {
  // The first process of its PID namespace, too: a root that somebody has left mounted is none of ours.
  if (process.pid !== 1 || !existsSync(mark))
    throw new Error('this root is the machine’s: golden disks are laid in a root of their own')
}

const script = `
set -e
work=$1 names=$2
shift 2
mount -t tmpfs golden "$work"
format() {
  truncate -s 96M "$1"
  mkfs.ext4 -q -F -b 4096 -I 256 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$1"
  mount -o loop "$1" "$2"
}
root="$work/root"
mkdir "$root"
format "$work/first.image" "$root"
rmdir "$root/lost+found"
for entry in /* /.[!.]*; do
  case " $names proc " in *" \${entry#/} "*) continue ;; esac
  if [ -L "$entry" ]; then cp -P "$entry" "$root$entry"
  elif [ -d "$entry" ]; then mkdir "$root$entry" && mount --rbind "$entry" "$root$entry"
  fi
done
mkdir "$root/o"
format "$work/second.image" "$root/o"
rmdir "$root/o/lost+found"
: >"$root${mark}"
mkdir "$root/proc"
mount -t proc proc "$root/proc"
exec chroot "$root" "$@"
`

/** Runs a module of the tests in such a root, where the machine's entries of these names are not; answers what it prints. */
export async function inOwnRoot(names: readonly string[], module: string, args: readonly string[]): Promise<string> {
  const command = [process.execPath, module, ...args]
  const hidden = command.find((path) => names.some((name) => path.startsWith(`/${name}/`)))
  if (hidden !== undefined) throw new Error(`${hidden} is below a name that golden disks have`)
  const work = mkdtempSync(join(tmpdir(), 'holdfast-golden-'))
  try {
    const inside = ['sh', '-c', script, 'sh', work, [...names, 'o'].join(' '), ...command]
    const child = spawn(
      'unshare',
      ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private', '--', ...inside],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { PATH: process.env['PATH'] ?? '', NODE_V8_COVERAGE: process.env['NODE_V8_COVERAGE'] },
      },
    )
    const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'close') as Promise<[number | null]>])
    if (code !== 0) throw new Error(`${module} has ended with ${code}`)
    return printed
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
