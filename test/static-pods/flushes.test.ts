/*
 * The cost of installing a revision of 30 Secrets and 10 ConfigMaps on a real disk, which counts it: at most twice the cost of
 * the same files as one directory, counted by turns in the same run, and twice the benchmark's limit for one directory of 50
 * files. Beside it, for scale: a directory of two files, and the revision in library-go's order of calls.
 */
// Own process: it takes longer than most files together.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { limitsOfOneDirectory } from '../../bench/limits.js'
import { costOf, median } from '../../bench/measure.js'
import { replaceDirectory } from '../../src/index.js'
import { silent } from '../../src/log.js'
import { DurableCalls as InstallDisk } from '../../src/durable/index.js'
import { install } from '../../src/static-pods/install/install.js'
import { planFromFiles } from '../../src/static-pods/install/install-from-files.js'
import { Disk, missingForDisk, type FileSystem } from '../disk/disk.js'
import { installInLibraryGoOrder } from './install/library-go-install.js'
import { podText, scratchWith } from './pods.js'

/**
 * Always so many, and one statistic: the median of the revision's rounds against twice the most of the directory's. An fsync on ext4 that
 * comes while a journal's commit is under way joins it or not, so that a barrier costs 2 flushes or 3: a directory (two barriers) 4 or 6,
 * about as often, and a revision (four) 8 to 12, mostly 10. A median of the directory's rounds would be 4 or 6 by chance, and no measure;
 * the most of 15 is the cost of its barriers where none joins. xfs and btrfs flush as often in each round. A fifth barrier gives 15 there,
 * against 14 and 12.
 */
const roundsOn: Readonly<Record<FileSystem, number>> = { ext4: 15, xfs: 5, btrfs: 5 }
const fileSystems = Object.keys(roundsOn) as FileSystem[]
const missing = await missingForDisk(fileSystems)
/** Milliseconds, as of a disk that users wait for; a flush that takes no time would merge with others less. */
const flushTime = 10
/** Most flushes of the revision, as a multiple of those of one directory: four barriers against two. */
const most = 2

/** A directory for each object: two files in a Secret, one in a ConfigMap. */
function objectsOf(revision: number): Map<string, Record<string, Uint8Array>> {
  const bytes = (text: string) => Buffer.alloc(4096, `${text} of revision ${revision}\n`)
  const objects = new Map<string, Record<string, Uint8Array>>()
  for (let n = 0; n < 30; n++)
    objects.set(`secrets/s${n}`, { 'tls.crt': bytes(`crt ${n}`), 'tls.key': bytes(`key ${n}`) })
  for (let n = 0; n < 10; n++) objects.set(`configmaps/c${n}`, { 'config.yaml': bytes(`config ${n}`) })
  return objects
}

for (const fileSystem of fileSystems) {
  const options = missing.length === 0 ? {} : { skip: `needs ${missing.join(', ')}` }
  await t.test(
    `install of a revision of 40 objects on ${fileSystem} keeps to its number of flushes`,
    options,
    async (t) => {
      const rounds = roundsOn[fileSystem]
      const [source, manifest] = scratchWith(t, 'web-pod.yaml')
      writeFileSync(manifest, podText())
      const disk = await Disk.create()
      t.teardown(() => disk.destroy())
      await disk.format(fileSystem)
      await disk.mount()
      await disk.flushTime(flushTime)
      const at = (name: string): string => join(disk.mountPoint, name)
      for (const name of ['directories', 'resources', 'manifests', 'other-resources', 'other-manifests'])
        mkdirSync(at(name))

      const installRevision = async (number: number): Promise<void> => {
        // The same files each time: on a file system without a journal a new file passes over every inode that was just freed.
        const resources = join(source, 'revision')
        for (const [directory, files] of objectsOf(number)) {
          mkdirSync(join(resources, directory), { recursive: true })
          for (const [name, content] of Object.entries(files)) writeFileSync(join(resources, directory, name), content)
        }
        const revision = { number, resourceDirectory: at('resources'), resources }
        const plan = await planFromFiles({ manifest, pod: undefined, revision, nodeName: undefined })
        await install(plan, {
          durable: new InstallDisk(),
          log: silent,
          signal: new AbortController().signal,
          manifestDirectory: at('manifests'),
          manifestLock: at('manifest.lock'),
          timeLeft: () => 0,
          requireProven: true,
          allowOlder: false,
          checkHostPaths: false,
          warnOfHostPaths: false,
        })
      }

      const costs = { revision: [] as number[], directory: [] as number[], small: [] as number[] }
      // The first round does not count: it makes records and directories that later rounds find.
      for (let round = 0; round <= rounds; round++) {
        const objects = objectsOf(round)
        const small = objects.get('secrets/s0') ?? {}
        const all = Object.fromEntries(
          [...objects].flatMap(([directory, files]) =>
            Object.entries(files).map(([name, content]) => [`${directory}/${name}`, content]),
          ),
        )
        const replace = (name: string, files: Record<string, Uint8Array>) => async () => {
          await replaceDirectory(at(`directories/${name}`), { files })
        }
        const revision = await costOf(disk, () => installRevision(round))
        const directory = await costOf(disk, replace('all', all))
        const pair = await costOf(disk, replace('pair', small))
        if (round === 0) continue
        costs.revision.push(revision.flushes)
        costs.directory.push(directory.flushes)
        costs.small.push(pair.flushes)
      }
      const live = JSON.parse(readFileSync(at('manifests/web-pod.yaml'), 'utf8')) as object
      t.match(live, { metadata: { labels: { revision: String(rounds) } } }, 'it was installed')
      const key = objectsOf(rounds).get('secrets/s29')?.['tls.key']
      t.same(readFileSync(at(`resources/web-pod-${rounds}/secrets/s29/tls.key`)), key)

      const other = await costOf(disk, () => {
        const content = readFileSync(manifest)
        installInLibraryGoOrder(
          at('other-resources/web-pod-1'),
          at('other-manifests/web-pod.yaml'),
          content,
          objectsOf(1),
        )
      })
      const counted = Object.entries(costs).map(([what, flushes]) => `${what} ${median(flushes)} (${flushes.join()})`)
      t.comment(`flushes on ${fileSystem}: ${counted.join(', ')}, library-go's order ${other.flushes}`)
      const limit = most * (limitsOfOneDirectory(fileSystem, 50).flushes ?? NaN)
      const revision = median(costs.revision)
      // A count of nothing would pass every limit.
      t.ok(revision >= 4, `${revision} flushes: four barriers`)
      t.ok(revision <= limit, `${revision} flushes, at most ${limit}`)
      t.equal(costs.revision.length, rounds)
      const multiple = revision / Math.max(...costs.directory)
      // In this form NaN fails, too.
      t.ok(multiple <= most, `${multiple.toFixed(2)} times one directory of the same files, at most ${most}`)
      t.ok(other.flushes >= 100, `library-go's order costs hundreds: ${other.flushes}`)
    },
  )
}
