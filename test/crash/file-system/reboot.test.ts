/*
 * A reboot alone publishes nothing anew: the same disk, mounted from another loop device under another boot, so that device numbers
 * differ, as they may with btrfs, loop devices and NVMe. Inodes and their times tell that nothing was written.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeFileSystem, missingForDisk, type FileSystem } from '../../disk/disk.js'
import { scratch } from '../../durable/scratch.js'
import { executable } from '../../project.js'
import { sizes } from '../power/logged-disk.js'

const fileSystems: readonly FileSystem[] = ['ext4', 'xfs', 'btrfs']

/** In a new mount namespace, which takes all mounts with it; the script detaches the loop devices. */
const script = `
cd "$1"
first=$(losetup --find --show image)
second=$(losetup --find --show image)
trap 'losetup --detach "$first" "$second"' EXIT
run() {
  "$2" "$3" sync --config holdfast.yaml --output json > "$1.json"
  printf 'a manifest' | "$2" "$3" write mounted/manifests/pod.yaml --output json > "$1-file.json"
}
state() { stat --format %d mounted/exchanged; find mounted -printf '%p %i %C@ %T@ %s %m\\n' | sort; }
mount "$first" mounted
mkdir mounted/manifests
run first "$2" "$3"
# The second pass with a state directory is an agent's, which the records name from then on.
"$2" "$3" sync --config holdfast.yaml > /dev/null
state > first.state
umount mounted
cat /proc/sys/kernel/random/uuid > boot
mount --bind boot /proc/sys/kernel/random/boot_id
mount "$second" mounted
state > second.state
run second "$2" "$3"
state > third.state
umount mounted
`

interface Printed {
  readonly directories: readonly { readonly outcome: string }[]
}

await t.test('the same disk from another loop device, under another boot', async (t) => {
  const missing = await missingForDisk(fileSystems)
  if (missing.length > 0) {
    t.pass('', { skip: `needs ${missing.join(', ')}` })
    return
  }
  for (const fileSystem of fileSystems) {
    const directory = scratch(t)
    prepare(directory, fileSystem)
    const command = ['--mount', '--propagation', 'private', 'bash', '-euo', 'pipefail', '-c', script, 'bash']
    execFileSync('unshare', [...command, directory, process.execPath, executable], {
      stdio: ['ignore', 'inherit', 'ignore'],
    })
    const outcomes = (name: string): string[] => {
      const read = (file: string): string => readFileSync(join(directory, file), 'utf8')
      const { directories } = JSON.parse(read(`${name}.json`)) as Printed
      const { outcome } = JSON.parse(read(`${name}-file.json`)) as Printed['directories'][number]
      return [...directories.map((one) => one.outcome), outcome]
    }
    t.same(outcomes('first'), ['created', 'created', 'created'], fileSystem)
    t.same(outcomes('second'), ['unchanged', 'unchanged', 'unchanged'], fileSystem)
    const [before = [], second = [], after = []] = ['first', 'second', 'third'].map((name) =>
      readFileSync(join(directory, `${name}.state`), 'utf8').split('\n'),
    )
    // btrfs takes a number that no mount has at the time: it may be the same one.
    if (fileSystem !== 'btrfs') t.not(second[0], before[0], `${fileSystem} has another device number`)
    t.same(after, second, `nothing was written on ${fileSystem}`)
  }
})

function prepare(directory: string, fileSystem: FileSystem): void {
  for (const name of ['mounted', 'objects']) mkdirSync(join(directory, name))
  writeFileSync(join(directory, 'image'), '')
  execFileSync('truncate', ['--size', `${sizes[fileSystem]}`, join(directory, 'image')])
  const [program = '', ...options] = makeFileSystem[fileSystem]
  execFileSync(program, [...options, join(directory, 'image')], { stdio: 'ignore' })
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'pair' },
    stringData: { key: 'k', 'tls.crt': 'c' },
  }
  writeFileSync(join(directory, 'objects', 'pair.json'), JSON.stringify(secret))
  const one = (path: string, publish: string): object => ({
    path: `mounted/${path}`,
    publish,
    contents: [{ secret: 'pair' }],
  })
  const configuration = {
    apiVersion: 'holdfast.dev/v1alpha1',
    kind: 'AgentConfiguration',
    stateDirectory: 'state',
    source: { namespace: 'demo', files: { path: 'objects' } },
    directories: [one('exchanged', 'exchange'), one('linked', 'symlink')],
  }
  writeFileSync(join(directory, 'holdfast.yaml'), JSON.stringify(configuration))
}
