/** Those of publishing, and of the system calls that it makes. */
export const ofPublishing = [
  {
    reason: 'two statements, neither of which reads or writes what the other one writes',
    mutants: [
      `SymlinkPublication.mutate swapped for (const _ of _) { if (_.has(_)) await this.fs.removeFile(this.#target, _) else await t…`,
      `WatchStart.constructor swapped this.#path = join(_, \`.holdfast-\${_}.watch\`)`,
      `DirectoryPublication.discardContent swapped if (this.#made) await remove(this.fs, this.directory, this.names.staging(this.random))`,
      `FilePublication.stageContent swapped this.#staged = await this.fs.attributes(_)`,
      `chosen swapped const _ = _.map(({ sequence: _ }) => _).join(', ')`,
      `chosen swapped if (_ === 'rolledBack' && !_ && _ === _ && (_ === undefined || _ === _)) { const _ = _.fi…`,
      `firstBarrier swapped await closeSynced(_)`,
      `publish.end swapped _.set(_, { error: errorOf(_, _, _) })`,
      `SymlinkPublication.constructor swapped this.planned = PlannedTree.ofDirectory(_, _.user)`,
      `syncAll swapped if (_?.broken === false) contexts.push(_)`,
      `readPublishedFiles swapped await _?.closeAll()`,
      `formDifferences swapped if (_ === undefined) _.push({ path: dataLink, problem: 'missing' })`,
      `currentLasting swapped if (isOlder(_, _)) _.warn(_, 'the API server now has an older version than holdfast publi…`,
      `Disk.syncNames swapped for (const _ of _.slice(1)) { _.push(_.anchor) if (_.missing.length === 0) _.push(...(awa…`,
      `Disk.syncNames swapped _.push(_.anchor)`,
      `Disk.replaceLink swapped const _ = namesFor(_).staging(this.fs.random())`,
      `OwnFile.replace swapped if (!this.#tidied) await this.#tidy(_, _, _)`,
      `syncVerdicts swapped await _.syncNames(_, _.map((_) => basename(_)))`,
      `removeAll swapped const _ = await leftoversOf(_, _, _, _, _, _)`,
      `removeAll swapped await _.rename(_, revisionName(_, _.revision), _, _, 'noreplace')`,
    ],
  },
  {
    reason: 'another order, in which all callers lock alike',
    mutants: [`publish negated _.site.identity < _.site.identity`],
  },
  {
    reason: 'a kill between the two leaves what a kill before the record is staged leaves',
    mutants: [
      `TargetPublication.discard swapped await this.#attempt('could not remove the staged content', () => this.discardContent())`,
    ],
  },
  {
    reason: 'two conditions, of which one value can meet one only',
    mutants: [
      `checkPath swapped if (_ === '') throw new TypeError('the path is empty')`,
      `renameError swapped if (_ === 'EEXIST' && _ === 'noreplace') { return foreign(\`another program created \${_} m…`,
      `renameError swapped if (_ === 'EXDEV' && _ === 'overlay' && _ === 'exchange') { const { problem: _, advice: _…`,
    ],
  },
  {
    reason: 'what is computed before a refusal, or an answer, is dropped with it',
    mutants: [
      `readPublishedContent swapped if (_ === undefined || hash('sha256', _) !== _) return undefined`,
      `resolve swapped if (_.code !== 'ENOENT') { throw unfit(\`\${_} is not a directory\`, { code: _.code, syscall…`,
      `syncParents swapped if ((await system.look(_, _))?.type !== 'directory') continue`,
      `relationOf swapped if (_.device !== _ || !_.startsWith(_)) return undefined`,
    ],
  },
  {
    reason: 'a way past the steps that follow: without a publication that goes on, each of them does nothing',
    mutants: [
      `publish swapped await _(_(), 'could not prepare the publication of', async (_) => { const _ = await _.pre…`,
    ],
  },
  {
    reason: 'what stands for a name that is missing: sysfs has no journal under either text',
    mutants: [
      `hasJournal shortened /DEVNAME=(.+)/.exec(readFileSync(\`/sys/dev/block/\${_}/uevent\`, 'latin1'))?.[1] ?? ''`,
    ],
  },
  {
    reason: 'a bit more of a flag which is never passed without the one that has this bit',
    mutants: ['waitAfter counted waitAfter = 4'],
  },
  {
    reason: 'a copy of bytes that nobody else has: a matter of memory',
    mutants: [`requestAsRecorded inverted contentStays: true`],
  },
  {
    reason: 'what stands for an outcome that `publish()` always has, for the compiler',
    mutants: [`only swallowed throw new Error('publish() returned nothing')`],
  },
  {
    reason: '`keep()` reads again where it changes what was read, and needs no reading before it',
    mutants: [`isWhole swapped await _.read()`, `desiredEntries swapped await _.read()`],
  },
  {
    reason: 'one millisecond more of a wait, or of the age at which something is read again',
    mutants: [`requestFromPast counted lockTimeout: _ = 0`],
  },
  {
    reason: 'what is asked only where content was found that is as desired, and so a target',
    mutants: [`SymlinkPublication.isComplete inverted return false`],
  },
  {
    reason: 'one millisecond more of a wait, or of the age at which something is read again',
    mutants: [`OwnFile.#tidy counted timeout: 0`, `fallBack counted _.lock(_, 0, undefined)`],
  },
  {
    reason:
      'what stands for an element that is always there, or is of another type than the one it is compared with next, for the compiler',
    mutants: [`Disk.syncNames shortened _.at(-1) ?? _`, `removeLeftovers shortened _ === undefined || _ === undefined`],
  },
  {
    reason: 'no answer counts as no, as `false` does',
    mutants: [`holdsPod swallowed { return false }`],
  },
  {
    reason: 'a file whose content is in memory keeps nothing open for a look: it is closed as every publication is',
    mutants: [`Disk.previewFile dropped await _.close()`],
  },
  {
    reason: 'a mark of this very instant says what a new one would say',
    mutants: [`WatchStart.#begin compared _.since <= _`],
  },
  {
    reason: 'what stands for an errno that every failed call of the file system has',
    mutants: [`errorAt shortened codeOf(_) ?? _.code`, `WatchStart.#begin shortened _ ?? messageOf(_)`],
  },
  {
    reason: 'states for the compiler what the steps before have made sure of',
    mutants: [
      `Site.identity swallowed throw new Error('open() comes first')`,
      `SymlinkPublication.#stagePast shortened _ === undefined || _ === undefined || !_?.tree`,
      `SymlinkPublication.swap swapped if (_ === undefined || this.#generation === undefined) throw new Error('stage() comes fir…`,
    ],
  },
  {
    reason: 'of what is staged only the inode is asked for, which does not change with its metadata',
    mutants: [`SymlinkPublication.stageContent swapped await setMetadata(this.fs, _, { ...this.plan, ..._ })`],
  },
]
