import { durable, type Mutation, mutation } from './mutation.js'
import { syncs } from './sync-mutations.js'

const firstBarrier = '// 5. Barrier 1.'
const secondBarrier = '// 7. Barrier 2, for whatever is visible now, even with a fault.'
const exchangeCall =
  'const failure = await failureOf(this.fs.rename(directory, from, directory, this.name, mode))'
const each = "await each(going(), 'too early', (publication) =>"

/** Errors that say less than they mean, and what they are taken for. */
const errors: readonly Mutation[] = [
  mutation(
    "the write-out hint's error is ignored",
    'barrier.ts',
    'await note(failures, files, (descriptors) => fs.startWriteOut(descriptors))',
    'await note(new Map<Owner, Error>(), files, (descriptors) => fs.startWriteOut(descriptors))',
  ),
  mutation(
    'a failed fsync is tried again',
    'barrier.ts',
    '(descriptors) => fs.sync(descriptors))',
    'async (descriptors) => ((await fs.sync(descriptors)), fs.sync(descriptors)))',
  ),
  mutation(
    'no mutation after barrier 2',
    'publish.ts',
    "await each(going(), 'could not make durable', (publication) => publication.mutate())",
    '',
  ),
  mutation(
    'links: no mutation after the last sync',
    'symlink-publication.ts',
    "somebody else's.\n    await super.mutate()",
    "somebody else's.",
  ),
  mutation(
    'the old is deleted on error',
    'publish.ts',
    'if (!publication.published) await publication.discard()',
    'await publication.discard()',
  ),
  mutation(
    'nothing is discarded on error',
    'publish.ts',
    'if (!publication.published) await publication.discard()',
    '',
  ),
  mutation(
    "the rename's answer is believed",
    'publication.ts',
    exchangeCall,
    `${exchangeCall}\n    if (failure !== undefined) throw failure`,
  ),
]

/** Steps in another order. */
const orders: readonly Mutation[] = [
  {
    name: 'exchange before barrier 1',
    patches: [
      { file: `${durable}/publish.ts`, find: firstBarrier, replace: `${each} publication.swap())` },
      {
        file: `${durable}/publish.ts`,
        find: "await each(swapping, 'could not publish', (publication) => publication.swap())",
        replace: '',
      },
    ],
    expected: ['model'],
  },
  mutation('settled before barrier 2', 'publish.ts', secondBarrier, `${each} publication.settle())`),
  mutation(
    'the old is retired before barrier 2',
    'publish.ts',
    secondBarrier,
    `${each} publication.retire())`,
  ),
  {
    name: 'mode and owner after the fsync',
    patches: [
      {
        file: `${durable}/stage.ts`,
        find: 'await adorn(fs, descriptor, plan.owner, file.mode, labels.of(file.path))',
        replace:
          ';((globalThis as { late?: (() => Promise<void>)[] }).late ??= []).push(() => adorn(fs, descriptor, plan.owner, file.mode, labels.of(file.path)))',
      },
      {
        file: `${durable}/publish.ts`,
        find: '// 6. Exchange.',
        replace:
          'for (const late of (globalThis as { late?: (() => Promise<void>)[] }).late?.splice(0) ?? []) await late().catch(() => undefined)',
      },
    ],
    expected: ['model'],
  },
  mutation(
    'two renames for an exchange',
    'publication.ts',
    exchangeCall,
    'const spare = this.names.staging(this.fs.random())\n' +
      "    if (mode === 'exchange') await this.fs.rename(directory, this.name, directory, spare, 'noreplace')\n" +
      "    const failure = await failureOf(this.fs.rename(directory, from, directory, this.name, 'noreplace'))\n" +
      "    if (mode === 'exchange') await this.fs.rename(directory, spare, directory, from, 'noreplace')",
  ),
  mutation(
    'links: the old ..data is removed first',
    'symlink-publication.ts',
    'const failure = await failureOf(this.fs.rename(target, nextDataLink, target, dataLink,',
    'await failureOf(this.fs.removeFile(target, dataLink))\n    const failure = await failureOf(this.fs.rename(target, nextDataLink, target, dataLink,',
  ),
]

/** What is kept, believed and cleaned up. */
const memory: readonly Mutation[] = [
  mutation('no record', 'publication.ts', '    await this.#stageRecord(staged)\n', ''),
  mutation(
    'every record is believed',
    'record.ts',
    'trusted: settled || body.boot !== boot',
    'trusted: true',
  ),
  mutation(
    'no other boot is believed',
    'record.ts',
    'trusted: settled || body.boot !== boot',
    'trusted: settled',
  ),
  mutation(
    'settled is never marked',
    'publication.ts',
    '() => this.#markSettled()',
    '() => Promise.resolve()',
  ),
  mutation(
    "a record's checksum is not looked at",
    'record.ts',
    ' || line.slice(0, 64) !== checksum(json)',
    '',
  ),
  mutation(
    'leftovers go before the new is settled',
    'recover.ts',
    'if (!isKnown(valid, current, digest, exists))',
    'if (nextSequence < 0)',
  ),
  mutation(
    'an unsettled publication is known',
    'recover.ts',
    'if (newest === current) return current.trusted',
    'if (newest === current) return true',
  ),
  mutation(
    'only the newest publication is asked',
    'recover.ts',
    ' && older.every(({ trusted }) => trusted)',
    '',
  ),
  mutation(
    'leftovers never go',
    'recover.ts',
    'for (const entry of others) {',
    'for (const entry of others.slice(others.length)) {',
  ),
  mutation(
    'the name check of the cleanup is wider',
    'names.ts',
    'return randomPattern.test(random) ? random : undefined',
    'return random',
  ),
  mutation('no target in the names', 'names.ts', '.update(basename)', ".update('')"),
  mutation(
    'nothing random in staging names',
    'publication.ts',
    'this.random = fs.random()',
    "this.random = '0'.repeat(16)",
  ),
  mutation('no lock', 'lock.ts', 'while (!scope.fs.tryLock(file))', 'while (request.timeout < 0)'),
  mutation(
    'ancestors are made 0700 first',
    'resolve.ts',
    'fs.createDirectory(parent, name, ancestorMode)',
    'fs.createDirectory(parent, name)',
  ),
  mutation('no label of the old', 'stage.ts', 'if (label) await fs.setLabel(descriptor, label)', ''),
  mutation('no owner', 'stage.ts', 'if (disowned) await fs.setOwner(descriptor, wanted.uid, wanted.gid)', ''),
]

/** What only a foreign program in the same instant shows. */
const hostile: readonly Mutation[] = [
  mutation(
    'a first directory replaces',
    'directory-publication.ts',
    "? 'noreplace' : 'exchange'",
    "? 'replace' : 'exchange'",
  ),
  mutation(
    'a first file replaces',
    'file-publication.ts',
    "? 'noreplace' : 'replace'",
    "? 'replace' : 'replace'",
  ),
  mutation(
    'what came out of the exchange is not looked at',
    'directory-publication.ts',
    'if (this.#old !== undefined) await this.#checkWhatCameOut(this.#old, this.#staged)',
    '',
  ),
]

export const mutations: readonly Mutation[] = [...syncs, ...errors, ...orders, ...memory, ...hostile]
