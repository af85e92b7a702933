import { same } from './listed.js'
/** Those of publishing, and of the system calls that it makes. */
export const ofPublishing = [
  same('two statements, neither of which reads or writes what the other one writes', [
    `SymlinkPublication.mutate swapped for (const _ of new Set([...this.#names, ..._])) { if (!this.#names.has(_)) await this.fs…`,
    `SymlinkPublication.mutate swapped await this.#setMetadata(_)`,
    `WatchStart.constructor swapped this.#path = join(_, \`.holdfast-\${_}.watch\`)`,
    `DirectoryPublication.discardContent swapped if (this.#made) await remove(this.fs, this.directory, this.names.staging(this.random))`,
    `chosen swapped const _ = _.map(({ sequence: _ }) => _).join(', ')`,
    `chosen swapped if (_ === 'rolledBack' && !_ && _ === _ && (_ === undefined || _ === _)) { const _ = _.fi…`,
    `firstBarrier swapped await closeSynced(_)`,
    `publishTogether.end swapped _.set(_, { error: errorOf(_, _, _) })`,
    `SymlinkPublication.constructor swapped this.planned = PlannedTree.ofDirectory(_, _.user)`,
    `syncAll swapped if (_?.broken === false) contexts.push(_)`,
    `formDifferences swapped if (_ === undefined) _.push({ path: dataLink, problem: 'missing' })`,
    `currentLasting swapped if (isOlder(_, _)) _.warn(_, 'the API server now has an older version than holdfast publi…`,
    `DurableCalls.syncNames.sync swapped for (const _ of _.slice(1)) { _.push(_.anchor) if (_.missing.length === 0) _.push(...(awa…`,
    `DurableCalls.syncNames.sync swapped _.push(_.anchor)`,
    `DurableCalls.replaceLink swapped const _ = await _.above()`,
    `OwnFile.replace swapped if (!this.#tidied) await this.#tidy(_)`,
    `syncVerdicts swapped await _.syncNames(_, _.map((_) => basename(_)))`,
    `removeAll swapped const _ = await leftoversOf(_, _, _, _, _, _)`,
    `removeAll swapped await _.rename(_, revisionName(_, _.revision), _, _, 'noreplace')`,
  ]),
  same('another order, in which all callers lock alike', [`publishTogether negated _.site.identity < _.site.identity`]),
  same('a kill between the two leaves what a kill before the record is staged leaves', [
    `TargetPublication.discard swapped await this.#attempt('could not remove the staged content', () => this.discardContent())`,
  ]),
  same('two conditions, of which one value can meet one only', [
    `checkPath swapped if (_ === '') throw new TypeError('the path is empty')`,
  ]),
  same('what is computed before a refusal, or an answer, is dropped with it', [
    `readPublishedContent swapped if (_ === undefined || hash('sha256', _) !== _) return undefined`,
    `resolve swapped if (_.code !== 'ENOENT') { throw unfit(\`\${_} is not a directory\`, { code: _.code, syscall…`,
    `syncParents.sync swapped if ((await _.look(_, _))?.type !== 'directory') continue`,
    `relationOf swapped if (_.device !== _ || !_.startsWith(_)) return undefined`,
  ]),
  same('a way past the steps that follow: without a publication that goes on, each of them does nothing', [
    `publishTogether swapped await _(_(), 'could not prepare the publication of', async (_) => { const _ = await _.pre…`,
  ]),
  same('what stands for a name that is missing: sysfs has no journal under either text', [
    `hasJournal shortened /DEVNAME=(.+)/.exec(readFileSync(\`/sys/dev/block/\${_}/uevent\`, 'latin1'))?.[1] ?? ''`,
  ]),
  same('a bit more of a flag which is never passed without the one that has this bit', [
    'waitAfter counted waitAfter = 4',
  ]),
  same('what stands for an outcome that `publish()` always has, for the compiler', [
    `only swallowed throw new Error('publish() returned nothing')`,
  ]),
  same('`keep()` reads again where it changes what was read, and needs no reading before it', [
    `isWhole swapped await _.read()`,
    `desiredEntries swapped await _.read()`,
  ]),
  same('one millisecond more of a wait, or of the age at which something is read again', [
    `requestFromPast counted lockTimeout: _ = 0`,
  ]),
  same('what is asked only where content was found that is as desired, and so a target', [
    `SymlinkPublication.isComplete inverted return false`,
  ]),
  same('one millisecond more of a wait, or of the age at which something is read again', [
    `OwnFile.#tidy counted timeout: 0`,
    `fallBack counted _.lock(_, 0, undefined)`,
  ]),
  same(
    'what stands for an element that is always there, or is of another type than the one it is compared with next, for the compiler',
    [
      `DurableCalls.syncNames.sync shortened _.at(-1) ?? _`,
      `removeLeftovers shortened _ === undefined || _ === undefined`,
    ],
  ),
  same('no answer counts as no, as `false` does', [`holdsPod swallowed { return false }`]),
  same('a mark of this very instant says what a new one would say', [`WatchStart.#begin compared _.since <= _`]),
  same('what stands for an errno that every failed call of the file system has', [
    `errorAt shortened codeOf(_) ?? _.code`,
    `WatchStart.#begin shortened _ ?? messageOf(_)`,
  ]),
  same('of what is staged only the inode is asked for, which does not change with its metadata', [
    `SymlinkPublication.stageContent swapped if (_) await setMetadata(this.fs, _, { ...this.plan, ..._.of('', 'directory', this.plan.m…`,
  ]),
]
