import { ofKeeping } from './equivalents-keeping.js'
import { ofReading } from './equivalents-reading.js'
import { ofPublishing } from './equivalents-publishing.js'

/** Mutants that no test can tell from the program, each with its reason. */
export interface Equivalent {
  readonly reason: string
  /** Their names. */
  readonly mutants: readonly string[]
}

const durable = 'src/durable'

export const equivalents: readonly Equivalent[] = [
  {
    reason: '`O_RDONLY` is 0: flags are the same without it',
    mutants: [
      `${durable}/posix/show-in-place.ts: showNewName unflagged constants.O_RDONLY of constants.O_DIRECTORY | constants.O_RDONLY`,
      `native/open.ts: directoryFlags unflagged constants.O_RDONLY of constants.O_RDONLY | constants.O_DIRECTORY`,
      `${durable}/posix/file-system.ts: NodeFileSystem.openDirectory unflagged O_RDONLY of O_RDONLY | O_DIRECTORY`,
      `${durable}/posix/file-system.ts: NodeFileSystem.openFile unflagged O_RDONLY of O_RDONLY | O_NOFOLLOW`,
      `${durable}/posix/open-path.ts: walkNoSymlinks unflagged O_RDONLY of O_RDONLY | O_DIRECTORY`,
      `${durable}/posix/open-path.ts: walkNoSymlinks unflagged O_RDONLY of O_RDONLY | O_DIRECTORY (2)`,
    ],
  },
  {
    reason: 'a comparison for a sort answers another negative number, which sorts the same',
    mutants: [
      `${durable}/publish/publish.ts: publish counted -1`,
      `${durable}/publish/publish.ts: refuseNested counted -1`,
    ],
  },
  {
    reason:
      'states the order of the steps for the compiler: `publish()` takes each publication through all of them, in that order, and whatever ' +
      'fails at one is at none that follows',
    mutants: [
      `${durable}/publish/directory-publication.ts: DirectoryPublication.stagedIdentity swallowed throw new Error('stageContent() comes first')`,
      `${durable}/publish/directory-publication.ts: DirectoryPublication.swap swallowed throw new Error('stage() comes first')`,
      `${durable}/publish/file-publication.ts: FilePublication.stagedIdentity swallowed throw new Error('stageContent() comes first')`,
      `${durable}/publish/file-publication.ts: FilePublication.swap swallowed throw new Error('stage() comes first')`,
      `${durable}/publish/file-publication.ts: FilePublication.swap swapped if (!this.#staged) throw new Error('stage() comes first')`,
      `${durable}/publish/symlink-publication.ts: SymlinkPublication.stagedIdentity swallowed throw new Error('stageContent() comes first')`,
      `${durable}/publish/symlink-publication.ts: SymlinkPublication.swap swallowed throw new Error('stage() comes first')`,
      `${durable}/publish/symlink-publication.ts: SymlinkPublication.swap shortened target === undefined || this.#generation === undefined`,
      `${durable}/target/site.ts: Site.mount swallowed throw new Error('open() comes first')`,
      `${durable}/target/site.ts: Site.parent swallowed throw new Error('open() comes first')`,
      `${durable}/target/site.ts: Site.place swallowed throw new Error('resolve() comes first')`,
      `${durable}/publish/publish.ts: publish shortened outcomes.get(publication) ?? unreachable()`,
      `${durable}/publish/publish.ts: publish shortened outcomes.get(publication) ?? unreachable() (2)`,
      `${durable}/publish/publish.ts: unreachable swallowed throw new Error('a publication has no outcome')`,
      `${durable}/publish/replace.ts: only swapped if (outcome === undefined) throw new Error('publish() returned nothing')`,
      `${durable}/move/relocation.ts: Move.#publishOld swallowed throw new Error('publish() returned nothing')`,
    ],
  },
  {
    reason:
      'what stands for a judgement that is missing: `prepare()` makes one before anything is staged, recorded or removed',
    mutants: [
      `${durable}/publish/publication.ts: TargetPublication.#recordPlace counted this.found?.current?.sequence ?? 0`,
      `${durable}/publish/publication.ts: TargetPublication.#recordPlace shortened this.found?.current?.sequence ?? 0`,
      `${durable}/publish/publication.ts: TargetPublication.#stageRecord counted this.found?.nextSequence ?? 1`,
      `${durable}/publish/publication.ts: TargetPublication.#stageRecord shortened this.found?.nextSequence ?? 1`,
      `${durable}/publish/publication.ts: TargetPublication.removeOld shortened this.found ?? {}`,
      `${durable}/publish/symlink-publication.ts: SymlinkPublication.stageContent counted this.found?.nextSequence ?? 1`,
      `${durable}/publish/symlink-publication.ts: SymlinkPublication.stageContent shortened this.found?.nextSequence ?? 1`,
    ],
  },
  {
    reason:
      'what stands for an element that is always there, or is of another type than the one it is compared with next, for the compiler',
    mutants: [
      `native/aio.ts: AioContext.#submit shortened descriptors[first + slot] ?? -1`,
      `native/aio.ts: AioContext.#submit counted -1`,
      `${durable}/path/generation.ts: topNames shortened path.split('/', 1)[0] ?? path`,
      `${durable}/publish/request.ts: checkTarget shortened target.replace(/\\/+$/, '').split('/').pop() ?? ''`,
      `${durable}/posix/open-path.ts: namedEach counted -1`,
      `${durable}/posix/open-path.ts: namedEach shortened descriptors[index] ?? -1`,
      `${durable}/posix/sync.ts: retryInvalid counted -1`,
      `${durable}/posix/sync.ts: retryInvalid shortened descriptors[index] ?? -1`,
      `${durable}/path/open-directories.ts: OpenDirectories.#hold shortened this.#pin(open) ?? this.#root`,
      `${durable}/path/open-directories.ts: OpenDirectories.#makeRoom shortened path === undefined || held === undefined`,
      `src/static-pods/install/install.ts: revisionStep shortened directory === undefined || revision === undefined`,
      `src/static-pods/monitor/watch-start.ts: readMark shortened typeof revision !== 'number' || typeof boot !== 'string'`,
    ],
  },
  {
    reason: 'what stands for a function that Node has on every POSIX system',
    mutants: [
      `${durable}/posix/file-system.ts: NodeFileSystem.user counted process.getegid?.() ?? 0`,
      `${durable}/posix/file-system.ts: NodeFileSystem.user counted process.geteuid?.() ?? 0`,
      `${durable}/posix/file-system.ts: NodeFileSystem.user shortened process.getegid?.() ?? 0`,
      `${durable}/posix/file-system.ts: NodeFileSystem.user shortened process.geteuid?.() ?? 0`,
    ],
  },
  {
    reason: 'what stands for a line of `/proc/self/fdinfo` that Linux has had since 3.15',
    mutants: [
      `${durable}/posix/mount.ts: idFromProcess counted -1`,
      `${durable}/posix/mount.ts: idFromProcess shortened /^mnt_id:\\s*(\\d+)/m.exec(information)?.[1] ?? -1`,
    ],
  },
  {
    reason: 'only the first of the parts is looked at, and no part is empty',
    mutants: [
      `${durable}/path/generation.ts: topNames counted path.split('/', 1)`,
      `${durable}/look/in-use.ts: relationOf counted within.slice(prefix.length).split('/', 1)`,
      `src/static-pods/install/orphaned-records.ts: nameIn counted (await readWhole(fs, file)).toString('utf8').split('\\n', 1)`,
    ],
  },
  {
    reason: 'two statements, neither of which reads or writes what the other one writes',
    mutants: [
      `native/aio.ts: AioContext.#submit swapped view.setUint32(at, first + slot, true)`,
      `native/aio.ts: AioContext.#submit swapped view.setUint32(at + 4, barrier, true)`,
      `native/aio.ts: AioContext.#submit swapped view.setUint16(at + 16, commandFsync, true)`,
      `${durable}/path/lock.ts: enqueue swapped queues.set(identity, last)`,
      `${durable}/posix/mount.ts: kindOf swapped kinds.set(id, kind)`,
      `${durable}/record/record-files.ts: readRecords swapped if (random !== undefined) staging.push(random)`,
      `${durable}/record/record-files.ts: readRecords swapped if (strange !== undefined) quarantined.push(strange)`,
      `${durable}/record/record-files.ts: readRecords swapped if (names.isGeneration(entry)) generations.push(entry)`,
      `${durable}/path/remove.ts: empty swapped found.push(at)`,
      `${durable}/record/record.ts: parseRecord swapped if (isText(line.hook)) done.add(line.hook)`,
      `${durable}/record/record.ts: parseRecord swapped if (knownFields.objects(line.objects)) objects = newer(objects, line.objects as RecordedO…`,
      `${durable}/record/record.ts: parseRecord swapped if (isText(line.within) && place) place = { ...place, within: line.within }`,
      `${durable}/publish/request.ts: checkRelativePath swapped const shown = JSON.stringify(path)`,
      `${durable}/posix/lead-commit.ts: behindLeadingCommit swapped await pause(headStart)`,
      `${durable}/publish/request.ts: planFor swapped checkRelativePath(path)`,
      `${durable}/look/inspect.ts: formDifferences swapped if (kept) { // They are the administrator's. } else if (root && root.mode !== mode) diffe…`,
      `${durable}/parallel.ts: inOrder swapped starting.catch(() => undefined)`,
      `${durable}/path/resolve.ts: walk swapped const text = await fs.readLinkPath(next)`,
      `${durable}/path/resolve.ts: walk swapped todo.unshift(...text.split('/').filter((piece) => piece !== ''))`,
      `${durable}/publish/symlink-publication.ts: SymlinkPublication.mutate swapped const stale = [...links].filter((name) => !this.#names.has(name))`,
      `${durable}/publish/symlink-publication.ts: SymlinkPublication.mutate swapped for (const name of missing) await this.#link(this.#target, name, \`\${dataLink}/\${name}\`)`,
      `src/static-pods/prune/prune.ts: removeAll swapped for (const line of lines.filter(({ outcome }) => outcome === 'removed')) { const staging …`,
    ],
  },
  {
    reason: 'two conditions, of which one value can meet one only',
    mutants: [
      `${durable}/posix/calls.ts: typeOf swapped if (entry.isFile()) return 'file'`,
      `${durable}/publish/request.ts: checkPath swapped if (typeof path !== 'string') throw new TypeError(\`a path must be a string, not \${kindOf(…`,
      `${durable}/publish/request.ts: checkRelativePath swapped if (part === '' || part === '.' || part === '..') { throw new TypeError(\`files: \${shown} …`,
      `${durable}/publish/request.ts: checkRelativePath swapped if (path === '') throw new TypeError('files: a path is empty')`,
      `${durable}/publish/request.ts: checkTarget swapped if (absolute === '/') throw new TypeError('the root directory cannot be replaced')`,
      `${durable}/path/lock.ts: open swapped if (codeOf(error) === 'ELOOP') { throw unfit(\`the lock \${pathOf(request)} is a symbolic l…`,
      `${durable}/record/record-files.ts: readRecordFile swapped if (codeOf(error) === 'ENOENT') return undefined`,
    ],
  },
  {
    reason: 'one millisecond more of a wait, or of the age at which something is read again',
    mutants: [
      `${durable}/path/lock.ts: lockOnce compared left <= 0`,
      `${durable}/path/lock.ts: lockOnce counted left <= 0`,
      `${durable}/posix/lead-commit.ts: headStart counted headStart = 1`,
      `${durable}/posix/mount.ts: kindOf compared clock.now() - readAt > freshness`,
      `${durable}/path/lock.ts: pollInterval counted pollInterval = 20`,
      `${durable}/posix/mount.ts: freshness counted freshness = 1000`,
      `${durable}/publish/examine.ts: tick counted tick = 20`,
      `${durable}/path/lock.ts: lock counted request.timeout ?? 0`,
      `${durable}/disk/operations.ts: Disk.tidy counted this.lock(join(dirname(path), names.lock), 0, undefined)`,
    ],
  },
  {
    reason: 'what stands for the errno of an error that has none: no set of errnos holds it, nor its absence',
    mutants: [
      `${durable}/look/inspect.ts: lookOnce shortened codeOf(error) ?? ''`,
      `${durable}/posix/holdings.ts: Scan.#descriptors shortened codeOf(error) ?? ''`,
      `${durable}/path/remove.ts: removeInside shortened codeOf(error) ?? ''`,
    ],
  },
  {
    reason: 'what is opened is never descriptor 0: Node keeps the first three open',
    mutants: [`native/open.ts: open compared result < 0`, `native/open.ts: open counted result < 0`],
  },
  {
    reason: 'io_submit(2) and io_getevents(2) never answer 0 here: there is a request, and no limit of time',
    mutants: [
      `native/aio.ts: AioContext.#submit compared result > 0`,
      `native/aio.ts: AioContext.#collect compared result < 0`,
      `native/aio.ts: AioContext.#collect counted result < 0`,
    ],
  },
  {
    reason: 'a comparison for a sort answers another number of the same sign, or of equals which comes first',
    mutants: [
      `${durable}/publish/publish.ts: publish counted a.site.identity < b.site.identity ? -1 : 1`,
      `${durable}/publish/publish.ts: refuseNested counted a.real < b.real ? -1 : 1`,
      `${durable}/publish/publish.ts: refuseNested compared a.real < b.real`,
    ],
  },
  {
    reason: 'numbers of barriers need only differ from one to the next',
    mutants: [
      `native/aio.ts: AioContext.#barriers counted #barriers = 0`,
      `native/aio.ts: AioContext.sync counted this.#barriers + 1`,
    ],
  },
  {
    reason: 'one more of a bound that is a matter of speed and memory: no answer depends on its number',
    mutants: [
      `native/aio.ts: maximumInFlight counted maximumInFlight = 256`,
      `native/lane.ts: Lane.constructor compared made.length < 2`,
      `native/lane.ts: Lane.constructor counted made.length < 2`,
      `native/xattr.ts: usualValue counted usualValue = 256`,
    ],
  },
  {
    reason: 'a buffer with one byte more than the kernel reads or writes, which is zero',
    mutants: [
      `native/mount-id.ts: sizeOfStatx counted sizeOfStatx = 256`,
      `native/aio.ts: AioContext.create counted allocate(8)`,
      `native/open.ts: sizeOfOpenHow counted sizeOfOpenHow = 24`,
    ],
  },
  {
    reason: 'what is remembered is not read again: the answer is the same',
    mutants: [
      `${durable}/posix/mount.ts: kindOf dropped kinds.set(id, kind)`,
      `${durable}/posix/mount.ts: kindOf dropped readAt = clock.now()`,
    ],
  },
  {
    reason: 'flags that mount(2) says it ignores at a bind mount',
    mutants: ['native/mount-namespace.ts: bind counted bind = 0x1000'],
  },
  {
    reason: 'the latest of some times, each of which is long after 1970: of two that are equal either will do',
    mutants: [
      `${durable}/publish/examine.ts: examineStaged compared changed > latest`,
      `${durable}/publish/examine.ts: examineStaged counted 0n`,
    ],
  },
  {
    reason: 'without targets nothing is done that could fail',
    mutants: [`${durable}/disk/sync-path.ts: syncParents shortened targets[0] ?? ''`],
  },
  {
    reason: 'what is given a value before anybody reads it: whatever comes between throws',
    mutants: [`${durable}/disk/operations.ts: Disk.removeFile inverted removed = false`],
  },
  {
    reason: 'the directory that all others are in is not among those that may be closed, however many use it',
    mutants: [`${durable}/path/open-directories.ts: OpenDirectories.constructor counted users: 1`],
  },
  {
    reason: 'what is passed over once is passed over again, and what is read or made before that is dropped',
    mutants: [
      `${durable}/posix/holdings.ts: Scan.mountsOf swapped this.#counted.add(mount.id)`,
      `${durable}/posix/holdings.ts: Scan.#descriptors swapped if (mount !== undefined && !this.devices.has(mount.device)) continue`,
      `${durable}/posix/holdings.ts: Scan.#mappings swapped if (!this.devices.has(on)) continue`,
      `${durable}/posix/holdings.ts: Scan.#unlessGone swapped if (code === undefined) throw error`,
      `native/xattr.ts: readNames swapped if (!isUtf8(bytes)) throw new SystemError('flistxattr', errnoOf('EILSEQ'), undefined)`,
      `native/xattr.ts: readNames swapped if (result >= 0) { const bytes = Buffer.from(names.buffer, 0, result) // One that is not …`,
    ],
  },
  {
    reason:
      'the order of two steps of which one says nothing to the other: a table that is filled later, a promise that ends later',
    mutants: [
      `${durable}/look/inspect.ts: readPublishedFiles swapped await scope.closeAll()`,
      `${durable}/path/open-directories.ts: OpenDirectories.closeAll swapped this.#held.clear()`,
      `${durable}/posix/holdings.ts: Scan.mountsOf swapped this.#tables.set(namespace, table)`,
      `${durable}/posix/holdings.ts: Scan.#mappings swapped silentPids.add(pid)`,
      `${durable}/posix/tree-users.ts: inodesOf swapped await directories.closeAll()`,
      `native/open.ts: howToOpen swapped how.setBigUint64(0, BigInt(checkInteger('flags', openFlags, 0, 0x7fffffff) | closeOnExec)…`,
    ],
  },
  {
    reason: 'zero is the same in both orders of its bytes, and no number, or no answer, is none as `undefined` is',
    mutants: [
      `native/aio.ts: AioContext.#submit inverted view.setBigUint64(at + byte, 0n, true)`,
      `native/aio.ts: AioContext.create inverted context.view.setBigUint64(0, 0n, true)`,
      `${durable}/posix/holdings.ts: Scan.#descriptors shortened /^mnt_id:\\s*(\\d+)/m.exec(information)?.[1] ?? NaN`,
      `native/libc.ts: keepStacks swallowed { return false }`,
      `native/malloc.ts: find swallowed { return null }`,
      `src/static-pods/install/newer-published.ts: isNewer shortened compareResourceVersions(published.resourceVersion, read.resourceVersion) ?? 0`,
      `src/static-pods/monitor/watch-start.ts: readMark swallowed { return undefined }`,
      `${durable}/record/record-lines.ts: parseLine swallowed { return undefined }`,
    ],
  },
  {
    reason: 'every mount point has a character, and `/` is a directory however it is opened',
    mutants: [
      `${durable}/posix/mountinfo.ts: mountAbove counted found?.mountPoint.length ?? 0`,
      `${durable}/posix/open-path.ts: walkNoSymlinks unflagged O_DIRECTORY of O_RDONLY | O_DIRECTORY`,
    ],
  },
  ...ofReading,
  ...ofKeeping,
  ...ofPublishing,
]
