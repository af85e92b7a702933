import { ofKeeping } from './equivalents-keeping.js'
import { ofReading } from './equivalents-reading.js'
import { ofPublishing } from './equivalents-publishing.js'

/** Mutants of which the same is said. */
export interface Listed {
  readonly reason: string
  /** Their names. */
  readonly mutants: readonly string[]
}

export const namesIn = (lists: readonly Listed[]): string[] => lists.flatMap(({ mutants }) => mutants)

/** Mutants that no test can tell from the program, each with its reason. */
export const equivalents: readonly Listed[] = [
  {
    reason: '`O_RDONLY` is 0: flags are the same without it',
    mutants: [
      `show-in-place.ts: showNewName unflagged constants.O_RDONLY of constants.O_DIRECTORY | constants.O_RDONLY`,
      `open.ts: directoryFlags unflagged constants.O_RDONLY of constants.O_RDONLY | constants.O_DIRECTORY`,
      `file-system.ts: NodeFileSystem.openDirectory unflagged O_RDONLY of O_RDONLY | O_DIRECTORY`,
      `file-system.ts: NodeFileSystem.openFile unflagged O_RDONLY of O_RDONLY | O_NOFOLLOW`,
    ],
  },
  {
    reason: 'a comparison for a sort answers another negative number, which sorts the same',
    mutants: [`publish.ts: publish counted -1`, `publish.ts: refuseNested counted -1`],
  },
  {
    reason:
      'states the order of the steps for the compiler: `publish()` takes each publication through all of them, in that order, and whatever ' +
      'fails at one is at none that follows',
    mutants: [
      `directory-publication.ts: DirectoryPublication.stagedIdentity swallowed throw new Error('stageContent() comes first')`,
      `directory-publication.ts: DirectoryPublication.swap swallowed throw new Error('stage() comes first')`,
      `file-publication.ts: FilePublication.stagedIdentity swallowed throw new Error('stageContent() comes first')`,
      `file-publication.ts: FilePublication.swap swallowed throw new Error('stage() comes first')`,
      `file-publication.ts: FilePublication.swap swapped if (!this.#staged) throw new Error('stage() comes first')`,
      `symlink-publication.ts: SymlinkPublication.stagedIdentity swallowed throw new Error('stageContent() comes first')`,
      `symlink-publication.ts: SymlinkPublication.swap swallowed throw new Error('stage() comes first')`,
      `symlink-publication.ts: SymlinkPublication.swap shortened target === undefined || this.#generation === undefined`,
      `site.ts: Site.mount swallowed throw new Error('open() comes first')`,
      `site.ts: Site.parent swallowed throw new Error('open() comes first')`,
      `site.ts: Site.place swallowed throw new Error('resolve() comes first')`,
      `publish.ts: publish shortened outcomes.get(publication) ?? unreachable()`,
      `publish.ts: publish shortened outcomes.get(publication) ?? unreachable() (2)`,
      `publish.ts: unreachable swallowed throw new Error('a publication has no outcome')`,
      `replace.ts: only swapped if (outcome === undefined) throw new Error('publish() returned nothing')`,
      `relocation.ts: Move.#publishOld swallowed throw new Error('publish() returned nothing')`,
    ],
  },
  {
    reason:
      'what stands for a judgement that is missing: `prepare()` makes one before anything is staged, recorded or removed',
    mutants: [
      `publication.ts: TargetPublication.#recordPlace counted this.found?.current?.sequence ?? 0`,
      `publication.ts: TargetPublication.#recordPlace shortened this.found?.current?.sequence ?? 0`,
      `publication.ts: TargetPublication.#stageRecord counted this.found?.nextSequence ?? 1`,
      `publication.ts: TargetPublication.#stageRecord shortened this.found?.nextSequence ?? 1`,
      `symlink-publication.ts: SymlinkPublication.stageContent counted this.found?.nextSequence ?? 1`,
      `symlink-publication.ts: SymlinkPublication.stageContent shortened this.found?.nextSequence ?? 1`,
    ],
  },
  {
    reason:
      'what stands for an element that is always there, or is of another type than the one it is compared with next, for the compiler',
    mutants: [
      `aio.ts: AioContext.#submit shortened descriptors[first + slot] ?? -1`,
      `aio.ts: AioContext.#submit counted -1`,
      `generation.ts: topNames shortened path.split('/', 1)[0] ?? path`,
      `target-path.ts: checkTarget shortened target.replace(/\\/+$/, '').split('/').pop() ?? ''`,
      `open-path.ts: namedEach counted -1`,
      `open-path.ts: namedEach shortened descriptors[index] ?? -1`,
      `sync.ts: retryInvalid counted -1`,
      `sync.ts: retryInvalid shortened descriptors[index] ?? -1`,
      `open-directories.ts: OpenDirectories.#hold shortened this.#pin(open) ?? this.#root`,
      `open-directories.ts: OpenDirectories.#makeRoom shortened path === undefined || held === undefined`,
      `install.ts: revisionStep shortened directory === undefined || revision === undefined`,
      `watch-start.ts: readMark shortened typeof revision !== 'number' || typeof boot !== 'string'`,
    ],
  },
  {
    reason: 'what stands for a function that Node has on every POSIX system',
    mutants: [
      `file-system.ts: NodeFileSystem.user counted process.getegid?.() ?? 0`,
      `file-system.ts: NodeFileSystem.user counted process.geteuid?.() ?? 0`,
      `file-system.ts: NodeFileSystem.user shortened process.getegid?.() ?? 0`,
      `file-system.ts: NodeFileSystem.user shortened process.geteuid?.() ?? 0`,
    ],
  },
  {
    reason: 'what stands for a line of `/proc/self/fdinfo` that Linux has had since 3.15',
    mutants: [
      `mount.ts: idFromProcess counted -1`,
      `mount.ts: idFromProcess shortened /^mnt_id:\\s*(\\d+)/m.exec(information)?.[1] ?? -1`,
    ],
  },
  {
    reason: 'only the first of the parts is looked at, and no part is empty',
    mutants: [
      `generation.ts: topNames counted path.split('/', 1)`,
      `in-use.ts: relationOf counted within.slice(prefix.length).split('/', 1)`,
      `orphaned-records.ts: nameIn counted (await readWhole(fs, file)).toString('utf8').split('\\n', 1)`,
    ],
  },
  {
    reason: 'two statements, neither of which reads or writes what the other one writes',
    mutants: [
      `aio.ts: AioContext.#submit swapped view.setUint32(at, first + slot, true)`,
      `aio.ts: AioContext.#submit swapped view.setUint32(at + 4, barrier, true)`,
      `aio.ts: AioContext.#submit swapped view.setUint16(at + 16, commandFsync, true)`,
      `lock.ts: enqueue swapped queues.set(identity, last)`,
      `mount.ts: kindOf swapped kinds.set(id, kind)`,
      `record-files.ts: readRecords swapped if (random !== undefined) staging.push(random)`,
      `record-files.ts: readRecords swapped if (strange !== undefined) quarantined.push(strange)`,
      `record-files.ts: readRecords swapped if (names.isGeneration(entry)) generations.push(entry)`,
      `remove.ts: empty swapped found.push(at)`,
      `record.ts: parseRecord swapped if (isText(line.hook)) done.add(line.hook)`,
      `record.ts: parseRecord swapped if (knownFields.objects(line.objects)) objects = newerObjects(objects, line.objects as Re…`,
      `record.ts: parseRecord swapped if (isText(line.within) && place) place = { ...place, within: line.within }`,
      `request.ts: checkRelativePath swapped const shown = JSON.stringify(path)`,
      `lead-commit.ts: behindLeadingCommit swapped await pause(headStart)`,
      `request.ts: planFor swapped checkRelativePath(path)`,
      `inspect.ts: formDifferences swapped if (kept) { // They are the administrator's. } else if (root && root.mode !== mode) diffe…`,
      `parallel.ts: inOrder swapped starting.catch(() => undefined)`,
      `resolve.ts: walk swapped todo.unshift(...text.split('/').filter((piece) => piece !== ''))`,
      `symlink-publication.ts: SymlinkPublication.mutate swapped const stale = [...links].filter((name) => !this.#names.has(name))`,
      `symlink-publication.ts: SymlinkPublication.mutate swapped for (const name of missing) await this.#link(this.#target, name, \`\${dataLink}/\${name}\`)`,
      `prune.ts: removeAll swapped for (const line of lines.filter(({ outcome }) => outcome === 'removed')) { const staging …`,
    ],
  },
  {
    reason: 'two conditions, of which one value can meet one only',
    mutants: [
      `calls.ts: typeOf swapped if (entry.isFile()) return 'file'`,
      `target-path.ts: checkPath swapped if (typeof path !== 'string') throw new TypeError(\`a path must be a string, not \${kindOf(…`,
      `request.ts: checkRelativePath swapped if (part === '' || part === '.' || part === '..') { throw new TypeError(\`files: \${shown} …`,
      `request.ts: checkRelativePath swapped if (path === '') throw new TypeError('files: a path is empty')`,
      `target-path.ts: checkTarget swapped if (absolute === '/') throw new TypeError('the root directory cannot be replaced')`,
      `lock.ts: open swapped if (codeOf(error) === 'ELOOP') { throw unfit(\`the lock \${pathOf(request)} is a symbolic l…`,
      `record-files.ts: readRecordFile swapped if (codeOf(error) === 'ENOENT') return undefined`,
    ],
  },
  {
    reason: 'one millisecond more of a wait, or of the age at which something is read again',
    mutants: [
      `lock.ts: lockOnce compared left > 0`,
      `lock.ts: lockOnce counted left > 0`,
      `lead-commit.ts: headStart counted headStart = 1`,
      `mount.ts: kindOf compared clock.now() - readAt > freshness`,
      `lock.ts: pollInterval counted pollInterval = 20`,
      `mount.ts: freshness counted freshness = 1000`,
      `examine.ts: tick counted tick = 20`,
      `lock.ts: lock counted request.timeout ?? 0`,
      `operations.ts: Disk.tidy counted this.lock(join(dirname(path), names.lock), 0, undefined)`,
    ],
  },
  {
    reason: 'what stands for the errno of an error that has none: no set of errnos holds it, nor its absence',
    mutants: [
      `inspect.ts: lookOnce shortened codeOf(error) ?? ''`,
      `holdings.ts: Scan.#descriptors shortened codeOf(error) ?? ''`,
      `remove.ts: removeInside shortened codeOf(error) ?? ''`,
    ],
  },
  {
    reason: 'what is opened is never descriptor 0: Node keeps the first three open',
    mutants: [`open.ts: open compared result < 0`, `open.ts: open counted result < 0`],
  },
  {
    reason: 'io_submit(2) and io_getevents(2) never answer 0 here: there is a request, and no limit of time',
    mutants: [
      `aio.ts: AioContext.#submit compared result > 0`,
      `aio.ts: AioContext.#collect compared result < 0`,
      `aio.ts: AioContext.#collect counted result < 0`,
    ],
  },
  {
    reason: 'a comparison for a sort answers another number of the same sign, or of equals which comes first',
    mutants: [
      `publish.ts: publish counted a.site.identity < b.site.identity ? -1 : 1`,
      `publish.ts: refuseNested counted a.real < b.real ? -1 : 1`,
      `publish.ts: refuseNested compared a.real < b.real`,
    ],
  },
  {
    reason: 'numbers of barriers need only differ from one to the next',
    mutants: [
      `aio.ts: AioContext.#barriers counted #barriers = 0`,
      `aio.ts: AioContext.sync counted this.#barriers + 1`,
    ],
  },
  {
    reason: 'one more of a bound that is a matter of speed and memory: no answer depends on its number',
    mutants: [
      `aio.ts: maximumInFlight counted maximumInFlight = 256`,
      `lane.ts: Lane.constructor compared made.length < 2`,
      `lane.ts: Lane.constructor counted made.length < 2`,
      `xattr.ts: usualValue counted usualValue = 256`,
    ],
  },
  {
    reason: 'a buffer with one byte more than the kernel reads or writes, which is zero',
    mutants: [
      `mount-id.ts: sizeOfStatx counted sizeOfStatx = 256`,
      `aio.ts: AioContext.create counted allocate(8)`,
      `open.ts: sizeOfOpenHow counted sizeOfOpenHow = 24`,
    ],
  },
  {
    reason: 'what is remembered is not read again: the answer is the same',
    mutants: [`mount.ts: kindOf dropped kinds.set(id, kind)`, `mount.ts: kindOf dropped readAt = clock.now()`],
  },
  {
    reason: 'flags that mount(2) says it ignores at a bind mount',
    mutants: ['namespaces.ts: bind counted bind = 0x1000'],
  },
  {
    reason: 'the latest of some times, each of which is long after 1970: of two that are equal either will do',
    mutants: [`examine.ts: examineStaged compared changed > latest`, `examine.ts: examineStaged counted 0n`],
  },
  {
    reason: 'without targets nothing is done that could fail',
    mutants: [`sync-path.ts: syncParents shortened targets[0] ?? ''`],
  },
  {
    reason: 'what is given a value before anybody reads it: whatever comes between throws',
    mutants: [`operations.ts: Disk.removeFile inverted removed = false`],
  },
  {
    reason: 'the directory that all others are in is not among those that may be closed, however many use it',
    mutants: [`open-directories.ts: OpenDirectories.constructor counted users: 1`],
  },
  {
    reason: 'what is passed over once is passed over again, and what is read or made before that is dropped',
    mutants: [
      `holdings.ts: Scan.mountsOf swapped this.#counted.add(mount.id)`,
      `holdings.ts: Scan.#descriptors swapped if (mount !== undefined && !this.devices.has(mount.device)) continue`,
      `holdings.ts: Scan.#mappings swapped if (!this.devices.has(on)) continue`,
      `holdings.ts: Scan.#unlessGone swapped if (code === undefined) throw error`,
      `xattr.ts: readNames swapped if (!isUtf8(bytes)) throw new SystemError('flistxattr', errnoOf('EILSEQ'), undefined)`,
      `xattr.ts: readNames swapped if (result >= 0) { const bytes = Buffer.from(names.buffer, 0, result) // One that is not …`,
    ],
  },
  {
    reason:
      'the order of two steps of which one says nothing to the other: a table that is filled later, a promise that ends later',
    mutants: [
      `inspect.ts: readPublishedFiles swapped await scope.closeAll()`,
      `open-directories.ts: OpenDirectories.closeAll swapped this.#held.clear()`,
      `holdings.ts: Scan.mountsOf swapped this.#tables.set(namespace, table)`,
      `holdings.ts: Scan.#mappings swapped silentPids.add(pid)`,
      `tree-users.ts: inodesOf swapped await directories.closeAll()`,
      `open.ts: howToOpen swapped how.setBigUint64(0, BigInt(checkInteger('flags', openFlags, 0, 0x7fffffff) | closeOnExec)…`,
    ],
  },
  {
    reason: 'zero is the same in both orders of its bytes, and no number, or no answer, is none as `undefined` is',
    mutants: [
      `aio.ts: AioContext.#submit inverted view.setBigUint64(at + byte, 0n, true)`,
      `aio.ts: AioContext.create inverted context.view.setBigUint64(0, 0n, true)`,
      `holdings.ts: Scan.#descriptors shortened /^mnt_id:\\s*(\\d+)/m.exec(information)?.[1] ?? NaN`,
      `libc.ts: keepStacks swallowed { return false }`,
      `malloc.ts: find swallowed { return null }`,
      `newer-published.ts: isNewer shortened compareResourceVersions(published.resourceVersion, read.resourceVersion) ?? 0`,
      `watch-start.ts: readMark swallowed { return undefined }`,
      `record-lines.ts: parseLine swallowed { return undefined }`,
    ],
  },
  {
    reason: 'every mount point has a character',
    mutants: [`mountinfo.ts: mountAbove counted found?.mountPoint.length ?? 0`],
  },
  ...ofReading,
  ...ofKeeping,
  ...ofPublishing,
]
