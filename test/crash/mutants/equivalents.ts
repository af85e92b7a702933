import { ofKeeping } from './equivalents-keeping.js'
import { ofReading } from './equivalents-reading.js'
import { ofPublishing } from './equivalents-publishing.js'
import { type Listed, same } from './listed.js'

/** Mutants that no test can tell from the program, each with its reason. */
export const equivalents: readonly Listed[] = [
  same('`O_RDONLY` is 0: flags are the same without it', [
    `showNewName unflagged constants.O_RDONLY of constants.O_DIRECTORY | constants.O_RDONLY`,
    `directoryFlags unflagged constants.O_RDONLY of constants.O_RDONLY | constants.O_DIRECTORY`,
    `NodeFileSystem.openDirectory unflagged O_RDONLY of O_RDONLY | O_DIRECTORY`,
    `NodeFileSystem.openFile unflagged O_RDONLY of O_RDONLY | O_NOFOLLOW`,
  ]),
  same('a comparison for a sort answers another negative number, which sorts the same', [
    `publishTogether counted -1`,
    `refuseNested counted -1`,
  ]),
  same(
    'states the order of the steps for the compiler: `publish()` takes each publication through all of them, in that order, and whatever ' +
      'fails at one is at none that follows',
    [
      `Site.mount swallowed throw new Error('open() comes first')`,
      `Site.parent swallowed throw new Error('open() comes first')`,
      `Site.place swallowed throw new Error('resolve() comes first')`,
      `publishTogether shortened _.get(_) ?? unreachable()`,
      `publishTogether shortened _.get(_) ?? unreachable() (2)`,
      `unreachable swallowed throw new Error('a publication has no outcome')`,
      `only swapped if (_ === undefined) throw new Error('publish() returned nothing')`,
      `Move.#publishOld swallowed throw new Error('publish() returned nothing')`,
    ],
  ),
  same(
    'what stands for a judgement that is missing: `prepare()` makes one before anything is staged, recorded or removed',
    [
      `TargetPublication.#stageRecord counted this.found?.nextSequence ?? 1`,
      `TargetPublication.#stageRecord shortened this.found?.nextSequence ?? 1`,
      `SymlinkPublication.stageContent counted this.found?.nextSequence ?? 1`,
      `SymlinkPublication.stageContent shortened this.found?.nextSequence ?? 1`,
    ],
  ),
  same(
    'what stands for an element that is always there, or is of another type than the one it is compared with next, for the compiler',
    [
      `AioContext.#submit shortened _[_ + _] ?? -1`,
      `AioContext.#submit counted -1`,
      `topNames shortened _.split('/', 1)[0] ?? _`,
      `checkTarget shortened _.replace(/\\/+$/, '').split('/').pop() ?? ''`,
      `namedEach counted -1`,
      `namedEach shortened _[_] ?? -1`,
      `retryInvalid counted -1`,
      `retryInvalid shortened _[_] ?? -1`,
      `OpenDirectories.#hold shortened this.#pin(_) ?? this.#root`,
      `OpenDirectories.#makeRoom shortened _ === undefined || _ === undefined`,
      `revisionStep shortened _ === undefined || _ === undefined`,
      `readMark shortened typeof _ !== 'number' || typeof _ !== 'string'`,
    ],
  ),
  same('what stands for a function that Node has on every POSIX system', [
    `NodeFileSystem.user.gid counted process.getegid?.() ?? 0`,
    `NodeFileSystem.user.uid counted process.geteuid?.() ?? 0`,
    `NodeFileSystem.user.gid shortened process.getegid?.() ?? 0`,
    `NodeFileSystem.user.uid shortened process.geteuid?.() ?? 0`,
  ]),
  same('what stands for a line of `/proc/self/fdinfo` that Linux has had since 3.15', [
    `idFromProcess counted -1`,
    `idFromProcess shortened /^mnt_id:\\s*(\\d+)/m.exec(_)?.[1] ?? -1`,
  ]),
  same('only the first of the parts is looked at, and no part is empty', [
    `topNames counted _.split('/', 1)`,
    `relationOf counted _.slice(_.length).split('/', 1)`,
  ]),
  same('two statements, neither of which reads or writes what the other one writes', [
    `AioContext.#submit swapped _.setUint32(_, _ + _, true)`,
    `AioContext.#submit swapped _.setUint32(_ + 4, _, true)`,
    `AioContext.#submit swapped _.setUint16(_ + 16, commandFsync, true)`,
    `enqueue swapped queues.set(_, _)`,
    `mountKind swapped kinds.clear()`,
    `readRecords swapped if (_ !== undefined) _.push(_)`,
    `readRecords swapped if (_ !== undefined) _.push(_) (2)`,
    `readRecords swapped if (_.isGeneration(_)) _.push(_)`,
    `parseRecord swapped if (isText(_.hook)) _.add(_.hook)`,
    `parseRecord swapped if (knownFields.objects.is(_.objects)) _ = newerObjects(_, _.objects)`,
    `checkRelativePath swapped const _ = JSON.stringify(_)`,
    `behindLeadingCommit swapped await sleep(headStart)`,
    `planFor swapped checkRelativePath(_)`,
    `formDifferences swapped if (_) { // They are the administrator's. } else if (_ && _.mode !== _) _.push({ path: '.…`,
    `inOrder swapped _.catch(() => undefined)`,
    `walk swapped _.unshift(..._.split('/').filter((_) => _ !== ''))`,
    `removeAll swapped for (const _ of _.filter(({ outcome: _ }) => _ === 'removed')) { const _ = _.staging(_.ra…`,
  ]),
  same('two conditions, of which one value can meet one only', [
    `typeOf swapped if (_.isFile()) return 'file'`,
    `NodeFileSystem.openLock swapped if (codeOf(_) === 'EROFS') return _(O_RDONLY)`,
    `checkPath swapped if (typeof _ !== 'string') throw new TypeError(\`a path must be a string, not \${describeAr…`,
    `checkRelativePath swapped if (_ === '' || _ === '.' || _ === '..') { throw new TypeError(\`files: \${_} has the part …`,
    `checkRelativePath swapped if (_ === '') throw new TypeError('files: a path is empty')`,
    `checkTarget swapped if (_ === '/') throw new TypeError('the root directory cannot be replaced')`,
  ]),
  same('one millisecond more of a wait, or of the age at which something is read again', [
    `lockOnce compared _ > 0`,
    `lockOnce counted _ > 0`,
    `headStart counted headStart = 1`,
    `mountKind compared clock.now() - oldest > freshness`,
    `pollInterval counted pollInterval = 20`,
    `freshness counted freshness = 1000`,
    `lock counted _.timeout ?? 0`,
    `DurableCalls.tidy counted this.lock(join(dirname(_), _.lock), 0, undefined)`,
  ]),
  same('what stands for the errno of an error that has none: no set of errnos holds it, nor its absence', [
    `lookUntilQuiet shortened codeOf(_) ?? ''`,
    `hasGone shortened codeOf(_) ?? ''`,
    `removeInside shortened codeOf(_) ?? ''`,
  ]),
  same('what is opened is never descriptor 0: Node keeps the first three open', [
    `open compared _ < 0`,
    `open counted _ < 0`,
  ]),
  same('io_submit(2) and io_getevents(2) never answer 0 here: there is a request, and no limit of time', [
    `AioContext.#submit compared _ > 0`,
    `AioContext.#collect compared _ < 0`,
    `AioContext.#collect counted _ < 0`,
  ]),
  same('a comparison for a sort answers another number of the same sign, or of equals which comes first', [
    `publishTogether counted _.site.identity < _.site.identity ? -1 : 1`,
    `refuseNested counted _.real < _.real ? -1 : 1`,
    `refuseNested compared _.real < _.real`,
  ]),
  same('numbers of barriers need only differ from one to the next', [
    `AioContext.#barriers counted #barriers = 0`,
    `AioContext.sync counted this.#barriers + 1`,
  ]),
  same('one more of a bound that is a matter of speed and memory: no answer depends on its number', [
    `maximumInFlight counted maximumInFlight = 256`,
    `Lane.constructor compared made.length < 2`,
    `Lane.constructor counted made.length < 2`,
    `usualValue counted usualValue = 256`,
  ]),
  same('a buffer with one byte more than the kernel reads or writes, which is zero', [
    `sizeOfStatx counted sizeOfStatx = 256`,
    `AioContext.create counted allocate(8)`,
    `sizeOfOpenHow counted sizeOfOpenHow = 24`,
  ]),
  same('what is remembered is not read again: the answer is the same', [
    `mountKind dropped kinds.set(_, _)`,
    `mountKind dropped oldest = clock.now()`,
  ]),
  same('flags that mount(2) says it ignores at a bind mount', ['bind counted bind = 0x1000']),
  same('the latest of some times, each of which is long after 1970: of two that are equal either will do', [
    `examineStaged compared _ > _`,
    `examineStaged counted [..._.values()].reduce((_, { changed: _ }) => (_ > _ ? _ : _), 0n)`,
  ]),
  same('without targets nothing is done that could fail', [`syncParents shortened _[0] ?? ''`]),
  same('what is given a value before anybody reads it: whatever comes between throws', []),
  same('the directory that all others are in is not among those that may be closed, however many use it', [
    `OpenDirectories.constructor counted users: 1`,
  ]),
  same('what is passed over once is passed over again, and what is read or made before that is dropped', [
    `Scan.mountsOf swapped this.#counted.add(_.id)`,
    `Scan.#descriptor swapped if (_ !== undefined && !this.devices.has(_.device)) return false`,
    `Scan.#mappings swapped if (!this.devices.has(_)) continue`,
    `Scan.#unlessGone swapped if (_ === undefined) throw _`,
    `readNames swapped if (!isUtf8(_)) throw new SystemError('flistxattr', errnoOf('EILSEQ'), undefined)`,
    `readNames swapped if (_ >= 0) { const _ = Buffer.from(_.buffer, 0, _) // JavaScript could not name such an …`,
  ]),
  same(
    'the order of two steps of which one says nothing to the other: a table that is filled later, a promise that ends later',
    [
      `OpenDirectories.closeAll swapped this.#held.clear()`,
      `Scan.mountsOf swapped this.#tables.set(_, _)`,
      `Scan.#mappings swapped silentPids.add(_)`,
      `inodesOf swapped await _.closeAll()`,
      `howToOpen swapped _.setBigUint64(0, BigInt(checkInteger('flags', _, 0, 0x7fffffff) | closeOnExec), true)`,
    ],
  ),
  same('zero is the same in both orders of its bytes, and no number, or no answer, is none as `undefined` is', [
    `AioContext.#submit inverted _.setBigUint64(_ + _, 0n, true)`,
    `AioContext.create inverted _.view.setBigUint64(0, 0n, true)`,
    `Scan.#descriptor shortened /^mnt_id:\\s*(\\d+)/m.exec(_)?.[1] ?? NaN`,
    `keepStacks swallowed { return false }`,
    `find swallowed { return null }`,
    `isNewerRevision shortened compareResourceVersions(_.resourceVersion, _.resourceVersion) ?? 0`,
    `readMark swallowed { return undefined }`,
    `parseLine swallowed { return undefined }`,
  ]),
  same('every mount point has a character, and `/` is a directory however it is opened', [
    `mountAbove counted _?.mountPoint.length ?? 0`,
  ]),
  ...ofReading,
  ...ofKeeping,
  ...ofPublishing,
]

/** The same outside the core: a name begins with that of its file. */
export const ofRooms: readonly Listed[] = [
  same(
    'what stands for an element that is always there, or for the answer of a function that always answers here, for the compiler',
    [
      `config/contents: readSelection shortened _?.map(({ at: _ }) => _) ?? []`,
      `config/directory: targetPath shortened _['allOf'] ?? []`,
      `config/duration: parseDuration shortened _[2] ?? ''`,
      `config/object-names: referenceTo shortened _.at(-1) ?? ''`,
      `config/object-names: referenceTo shortened _[0] ?? ''`,
      `fleet/reporter: isBehind shortened compareResourceVersions(_.resourceVersion, _.resourceVersion) ?? 0`,
    ],
  ),
  same('two statements, neither of which reads or writes what the other one writes', [
    `fleet/wait: Wait.look swapped this.options.progress({ done: _, nodes: _.length })`,
    `fleet/reporter: NodeReporter.#succeeded swapped this.#backoff.reset()`,
    `kubernetes/credentials/credential-files: CredentialFiles.watch swapped this.#watches.set(_, _)`,
  ]),
  same('one millisecond more of a wait', [
    `fleet/reporter: rolesPatience counted 2 * 60_000 (2)`,
    `fleet/reporter: refusalPause counted 5 * 60_000 (2)`,
  ]),
  same('a place of a value that was written nowhere: no message shows it', [`config/field: nodeOf counted size: 1`]),
  same('the states of a node are sorted behind it', [
    `fleet/overview: nodeExceptions swapped if (_.nodeUID !== _) _.push('OtherNode') else if (_.bootID !== _) _.push('OtherBoot')`,
  ]),
  same('two versions of the same order are the same text, which is asked first', [
    `fleet/judge: judgeDirectory counted _ < 0`,
  ]),
]
