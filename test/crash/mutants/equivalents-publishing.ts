/** Those of publishing, and of the system calls that it makes. */
export const ofPublishing = [
  {
    reason: 'the value of an entry of a table whose keys alone are read',
    mutants: ['published', 'driftRepaired', 'rolledBack', 'adopted'].map(
      (cause) => `record-fields.ts: causes inverted ${cause}: true`,
    ),
  },
  {
    reason: 'two statements, neither of which reads or writes what the other one writes',
    mutants: [
      `directory-publication.ts: DirectoryPublication.stageContent swapped this.stagedAttributes = metadata.digest(this.desired)`,
      `directory-publication.ts: DirectoryPublication.discardContent swapped if (this.#made) await remove(this.fs, this.directory, this.names.staging(this.random))`,
      `file-publication.ts: FilePublication.stageContent swapped this.stagedAttributes = metadata.digest(this.desired)`,
      `file-publication.ts: FilePublication.stageContent swapped this.#staged = await this.fs.attributes(file)`,
      `rollback.ts: chosen swapped const shown = generations.map(({ sequence }) => sequence).join(', ')`,
      `rollback.ts: chosen swapped if (why === 'rolledBack' && !trusted && digest === after && (to === undefined || to === p…`,
      `publish.ts: firstBarrier swapped await closeSynced(all)`,
      `publish.ts: publish.end swapped outcomes.set(publication, { error: errorOf(publication, error, doing) })`,
      `symlink-publication.ts: SymlinkPublication.constructor swapped this.planned = PlannedTree.ofDirectory(plan, fs.user)`,
      `sync.ts: syncAll swapped if (context?.broken === false) contexts.push(context)`,
      `inspect.ts: readPublishedFiles swapped await directories?.closeAll()`,
      `inspect.ts: formDifferences swapped if (generation === undefined) differences.push({ path: dataLink, problem: 'missing' })`,
      `newer-published.ts: currentLasting swapped if (isOlder(fresh, published)) log.warn(details, 'the API server now has an older version…`,
      `operations.ts: Disk.syncNames swapped for (const on of places.slice(1)) { open.push(on.anchor) if (on.missing.length === 0) ope…`,
      `operations.ts: Disk.syncNames swapped open.push(on.anchor)`,
      `operations.ts: Disk.replaceLink swapped const staging = namesFor(name).staging(this.fs.random())`,
      `own-file.ts: OwnFile.replace swapped if (!this.#tidied) await this.#tidy(scope, directory, names)`,
      `prune.ts: syncVerdicts swapped await disk.syncNames( manifestDirectory, manifests.map((path) => basename(path)), )`,
      `prune.ts: removeAll swapped const leftovers = await leftoversOf(disk, directory, pod, newest, resourceDirectory, log)`,
      `prune.ts: removeAll swapped await fs.rename(directory, revisionName(pod, line.revision), directory, staging, 'norepla…`,
    ],
  },
  {
    reason: 'two conditions, of which one value can meet one only',
    mutants: [
      `target-path.ts: checkPath swapped if (path === '') throw new TypeError('the path is empty')`,
      `refusals.ts: renameError swapped if (code === 'EEXIST' && mode === 'noreplace') { return foreign(\`another program created …`,
      `refusals.ts: renameError swapped if (code === 'EXDEV' && type === 'overlay' && mode === 'exchange') { return unfit(\`\${path…`,
    ],
  },
  {
    reason: 'what is computed before a refusal, or an answer, is dropped with it',
    mutants: [
      `published-content.ts: readPublishedContent swapped if (content === undefined || hash('sha256', content) !== sha256) return undefined`,
      `resolve.ts: resolve swapped if (opened.code !== 'ENOENT') { throw unfit(\`\${path} is not a directory\`, { code: opened.…`,
      `sync-path.ts: syncParents swapped if ((await system.look(anchor, name))?.type !== 'directory') continue`,
      `in-use.ts: relationOf swapped if (location.device !== device || !within.startsWith(prefix)) return undefined`,
    ],
  },
  {
    reason: 'a way past the steps that follow: without a publication that goes on, each of them does nothing',
    mutants: [
      `publish.ts: publish swapped await each(going(), 'could not prepare the publication of', async (publication) => { cons…`,
    ],
  },
  {
    reason: 'what stands for a name that is missing: sysfs has no journal under either text',
    mutants: [
      `mount.ts: hasJournal shortened /DEVNAME=(.+)/.exec(readFileSync(\`/sys/dev/block/\${device}/uevent\`, 'latin1'))?.[1] ?? ''`,
    ],
  },
  {
    reason: 'a bit more of a flag which is never passed without the one that has this bit',
    mutants: ['sync-file-range.ts: waitAfter counted waitAfter = 4'],
  },
  {
    reason: 'a copy of bytes that nobody else has: a matter of memory',
    mutants: [`request.ts: requestAsRecorded inverted contentStays: true`],
  },
  {
    reason: 'what stands for an outcome that `publish()` always has, for the compiler',
    mutants: [`replace.ts: only swallowed throw new Error('publish() returned nothing')`],
  },
  {
    reason: '`keep()` reads again where it changes what was read, and needs no reading before it',
    mutants: [
      `rollback.ts: isWhole swapped await planned.read()`,
      `replace.ts: desiredEntries swapped await planned.read()`,
    ],
  },
  {
    reason: 'one millisecond more of a wait, or of the age at which something is read again',
    mutants: [`rollback.ts: requestFor counted lockTimeout = 0`],
  },
  {
    reason: 'what is asked only where content was found that is as desired, and so a target',
    mutants: [`symlink-publication.ts: SymlinkPublication.isComplete inverted return false`],
  },
  {
    reason: 'one millisecond more of a wait, or of the age at which something is read again',
    mutants: [
      `own-file.ts: OwnFile.#tidy counted timeout: 0`,
      `fall-back.ts: lockOperations counted disk.lock(path, 0, undefined)`,
    ],
  },
  {
    reason:
      'what stands for an element that is always there, or is of another type than the one it is compared with next, for the compiler',
    mutants: [
      `operations.ts: Disk.syncNames shortened places.at(-1) ?? place`,
      `install.ts: removeLeftovers shortened directory === undefined || revision === undefined`,
    ],
  },
  {
    reason: 'no answer counts as no, as `false` does',
    mutants: [`install.ts: holdsPod swallowed { return false }`],
  },
  {
    reason: 'a file whose content is in memory keeps nothing open for a look: it is closed as every publication is',
    mutants: [`operations.ts: Disk.previewFile dropped await publication.close()`],
  },
  {
    reason: 'a mark of this very instant says what a new one would say',
    mutants: [`watch-start.ts: WatchStart.#begin compared known.since <= now`],
  },
  {
    reason: 'what stands for an errno that every failed call of the file system has',
    mutants: [
      `calls.ts: errorAt shortened codeOf(error) ?? error.code`,
      `watch-start.ts: WatchStart.#warn shortened code ?? messageOf(error)`,
    ],
  },
  {
    reason: 'only the first of the parts is looked at, and no part is empty',
    mutants: [`watch-start.ts: uptime counted (await readFile('/proc/uptime', 'latin1')).split(' ', 1)`],
  },
  {
    reason: 'states for the compiler what the steps before have made sure of',
    mutants: [
      `site.ts: Site.identity swallowed throw new Error('open() comes first')`,
      `symlink-publication.ts: SymlinkPublication.#stagePast shortened past === undefined || current === undefined || !found?.tree`,
      `symlink-publication.ts: SymlinkPublication.swap swapped if (target === undefined || this.#generation === undefined) throw new Error('stage() come…`,
    ],
  },
  {
    reason: 'of what is staged only the inode is asked for, which does not change with its metadata',
    mutants: [
      `symlink-publication.ts: SymlinkPublication.stageContent swapped await setMetadata(this.fs, target, { ...this.plan, ...metadata })`,
    ],
  },
]
