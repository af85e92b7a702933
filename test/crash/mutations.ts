import { attributes } from './attribute-mutations.js'
import { examinations } from './examine-mutations.js'
import { errors } from './error-mutations.js'
import { model, type Mutation, mutation, compound, ownTest, ownTestOfRoot, syscalls } from './mutation.js'
import { openings } from './opening-mutations.js'
import { places } from './place-mutations.js'
import { records } from './record-mutations.js'
import { staticPods } from './static-pod-mutations.js'
import { syncs } from './sync-mutations.js'

const firstBarrier = '// 5. Barrier 1.'
const secondBarrier = '// 7. Barrier 2, for whatever is visible now, even after an error.'
const exchangeCall = 'const failure = await failureOf(fs.rename(directory, from, directory, to, mode))'
const each = "await each(going(), 'too early', (publication) =>"

const orders: readonly Mutation[] = [
  compound(
    'exchange before barrier 1',
    [
      ['publish/publish.ts', firstBarrier, `${each} publication.swap())`],
      ['publish/publish.ts', "await each(swapping, 'could not publish', (publication) => publication.swap())", ''],
    ],
    model(),
    syscalls(),
  ),
  mutation('committed before barrier 2', 'publish/publish.ts', secondBarrier, `${each} publication.commit())`, model()),
  mutation(
    'the old is removed before barrier 2',
    'publish/publish.ts',
    secondBarrier,
    `${each} publication.removeOld())`,
    model(),
  ),
  compound(
    'mode and owner after the fsync',
    [
      [
        'publish/stage.ts',
        'await setMetadata(fs, descriptor, metadataOf(file,',
        'const setLate = (metadata: Metadata): void => void ((globalThis as { late?: (() => Promise<void>)[] }).late ??= []).push(() => setMetadata(fs, descriptor, metadata))\n      setLate(metadataOf(file,',
      ],
      [
        'publish/publish.ts',
        '// 6. Exchange.',
        'for (const late of (globalThis as { late?: (() => Promise<void>)[] }).late?.splice(0) ?? []) await late().catch(() => undefined)',
      ],
    ],
    model(),
  ),
  mutation(
    'two renames for an exchange',
    'publish/visible-rename.ts',
    exchangeCall,
    'const spare = from.slice(0, -16) + fs.random()\n' +
      "  if (mode === 'exchange') await fs.rename(directory, to, directory, spare, 'noreplace')\n" +
      "  const failure = await failureOf(fs.rename(directory, from, directory, to, 'noreplace'))\n" +
      "  if (mode === 'exchange') await fs.rename(directory, spare, directory, from, 'noreplace')",
    model(),
  ),
  mutation(
    'links: the old ..data is removed first',
    'publish/symlink-publication.ts',
    'const failure = await failureOf(this.fs.rename(target, nextDataLink, target, dataLink,',
    'await failureOf(this.fs.removeFile(target, dataLink))\n    const failure = await failureOf(this.fs.rename(target, nextDataLink, target, dataLink,',
    model('symlink'),
  ),
]

const memory: readonly Mutation[] = [
  mutation('no record', 'publish/publication.ts', '    await this.#stageRecord(staged)\n', '', model(), syscalls()),
  mutation(
    'every record is believed',
    'record/record.ts',
    'trusted: committed || body.boot !== boot',
    'trusted: true',
    ownTest('durable/settling'),
    model(),
  ),
  mutation(
    'no other boot is believed',
    'record/record.ts',
    'trusted: committed || body.boot !== boot',
    'trusted: committed',
    ownTest('durable/settling'),
    model(),
  ),
  mutation(
    'a commit is never recorded',
    'publish/publication.ts',
    '() => this.#record?.markCommitted()',
    '() => Promise.resolve()',
    ownTest('durable/settling'),
    model(),
    syscalls(),
  ),
  mutation(
    "a record's checksum is not looked at",
    'record/record-lines.ts',
    ' && piece.slice(0, 64) === checksum(json)',
    '',
    ownTest('crash/file-system/trust'),
  ),
  mutation(
    "anybody's record is believed",
    'record/record-files.ts',
    "if (type !== 'file' || !own || (mode & 0o022) !== 0) return null",
    "if (type !== 'file') return null",
    ownTest('crash/file-system/trust'),
  ),
  mutation(
    "somebody else's record name is tried again and again",
    'record/record-files.ts',
    '  while (taken.has(sequence)) sequence++\n',
    '',
    ownTest('crash/file-system/trust'),
  ),
  mutation(
    "somebody else's file raises the sequence",
    'record/record-files.ts',
    'Math.max(0, ...torn,',
    'Math.max(0, ...torn, ...taken,',
    ownTest('crash/file-system/trust'),
  ),
  mutation(
    'leftovers go before the new is committed',
    'record/judge.ts',
    'if (!isKnown(seen, valid, standing, current))',
    'if (valid.length < 0)',
    ownTest('durable/settling'),
    model(),
  ),
  mutation(
    'an unsettled publication is known',
    'record/judge.ts',
    'return current?.trusted === true',
    'return current !== undefined',
    ownTest('durable/settling'),
    model(),
  ),
  mutation(
    'only the newest publication is asked',
    'record/judge.ts',
    'standing.every(({ trusted }) => trusted)',
    'valid.length > 0',
    ownTest('durable/doubt'),
  ),
  mutation(
    'leftovers never go',
    'keep/clean.ts',
    'for (const entry of names) {',
    'for (const entry of names.slice(names.length)) {',
    model('first publication'),
  ),
  mutation(
    'the name check of the cleanup is wider',
    'path/names.ts',
    "randomPattern.exec(behind('-', name))?.[0]",
    "behind('-', name) || undefined",
    model('first publication'),
  ),
  mutation('no target in the names', 'path/names.ts', '.update(basename)', ".update('')", model()),
  mutation(
    'nothing random in staging names',
    'publish/publication.ts',
    'this.random = fs.random()',
    "this.random = '0'.repeat(16)",
    model(),
  ),
  mutation(
    'target and staging may be one directory',
    'keep/clean.ts',
    'await refuseOneInode(area, records.staging)',
    '',
    ownTest('crash/file-system/one-inode'),
  ),
  mutation(
    'no lock',
    'path/lock.ts',
    'while (!scope.fs.tryLock(file))',
    'while (request.timeout < 0)',
    ownTest('durable/path/lock'),
    model(),
    syscalls(),
  ),
  mutation(
    'callers in one process do not wait for one another',
    'path/lock.ts',
    'if (before === undefined) return release',
    'return release',
    ownTest('crash/file-system/trust'),
    ownTest('durable/path/lock'),
  ),
  mutation(
    "anybody's lock is taken",
    'path/lock.ts',
    "type !== 'file' || (uid !== 0 && uid !== scope.fs.user.uid)",
    "type !== 'file'",
    ownTestOfRoot('crash/file-system/trust'),
  ),
  mutation(
    'ancestors are made 0700 first',
    'path/resolve.ts',
    'fs.createDirectory(parent, name, ancestorMode)',
    'fs.createDirectory(parent, name)',
    model('ancestors'),
  ),
  mutation(
    'no label of the old',
    'path/kept-attributes.ts',
    'if (label && !isEqual(await fs.label(descriptor), label)) await fs.setLabel(descriptor, label)',
    '',
    model('labels'),
  ),
  mutation(
    'no owner',
    'path/kept-attributes.ts',
    'if (disowned) await fs.setOwner(descriptor, desired.uid, desired.gid)',
    '',
    model(),
    syscalls(),
  ),
]

/** What only a foreign program in the same instant shows. */
const hostile: readonly Mutation[] = [
  mutation(
    'a first directory replaces',
    'publish/directory-publication.ts',
    "this.renameOver(this.#staged, 'noreplace')",
    "this.renameOver(this.#staged, 'replace')",
    model('first publication'),
  ),
  mutation(
    'a first file replaces',
    'publish/file-publication.ts',
    "? 'noreplace' : 'replace'",
    "? 'replace' : 'replace'",
    model('a file, first'),
  ),
  mutation(
    'what came out of the exchange is not looked at',
    'publish/directory-publication.ts',
    "if (await this.renameOver(staged, 'exchange', old)) return",
    "await this.renameOver(staged, 'exchange', old)\n    if (old) return",
    ownTest('durable/settling'),
    model(),
  ),
  mutation(
    'an exchange that is taken back is not synced',
    'publish/came-out.ts',
    'if (!published) failure = await syncDirectory(fs, directory)',
    '',
    ownTest('durable/taken-back'),
  ),
  mutation(
    'what is under a staging name is taken for our own',
    'keep/quarantine.ts',
    'found === undefined || isOld ||',
    'found !== null || isOld ||',
    ownTest('durable/keep/quarantine'),
    model('replacement', 'taken out'),
  ),
  mutation(
    'what is put into quarantine is not synced',
    'keep/quarantine.ts',
    'if (pending) await fsyncAll(fs, [parent])',
    '',
    ownTest('durable/keep/quarantine'),
    model('replacement', 'taken out'),
  ),
  mutation(
    'what a predecessor has put into quarantine is not synced',
    'keep/quarantine.ts',
    'let pending = quarantined.some((random) => claims.has(names.staging(random)))',
    'let pending = false',
    ownTest('durable/keep/quarantine'),
  ),
  mutation(
    'staging of a family is recognized by one target alone',
    'keep/clean.ts',
    'area.options.family !== undefined ? await readAllRecords(area.fs, area.parent) : valid',
    'valid',
    ownTest('durable/keep/quarantine'),
    model('family', 'taken out'),
  ),
]

export const mutations: readonly Mutation[] = [
  ...syncs,
  ...errors,
  ...examinations,
  ...attributes,
  ...orders,
  ...places,
  ...memory,
  ...hostile,
  ...openings,
  ...records,
  ...staticPods,
]
