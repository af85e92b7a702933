import { same } from './listed.js'

/** Those of sources that read: files, streams, and open descriptors. */
export const ofReading = [
  same('`O_RDONLY` is 0: flags are the same without it', [
    `NodeFileSystem.openContent unflagged O_RDONLY of O_RDONLY | O_NONBLOCK`,
  ]),
  same('what stands for what was found, which is always there: each opening finds it, or throws', [
    `FileContentSource.size counted this.#found?.size ?? 0`,
    `FileContentSource.size shortened this.#found?.size ?? 0`,
    `FileContentSource.read counted this.#found?.size ?? 0`,
    `FileContentSource.read counted this.#found?.size ?? 0 (2)`,
    `FileContentSource.read shortened this.#found?.size ?? 0`,
    `FileContentSource.read shortened this.#found?.size ?? 0 (2)`,
  ]),
  same(
    'two statements, neither of which reads or writes what the other one writes, or that is dropped where the other one throws',
    [
      `ContentSource.pieces swapped this.options.signal?.throwIfAborted()`,
      `StreamSource.constructor swapped super(_, _)`,
      `addContent swapped _.content(_.value)`,
      `addContent swapped if (_?.done === false && _.value.length === _) { _.content(_.value) const _ = hash('sha25…`,
      `addContent swapped _.content(_.value) (2)`,
      `StreamSource.#chunksGiven swapped if (_?.aborted || _ instanceof DurableWriteError) throw _`,
      `showNewName swapped for (const _ of _) showAgain(\`\${_}/\${_}\`, \`\${_}/\${_}\`)`,
    ],
  ),
  same('two conditions, of which one value can meet one only', [
    `StreamSource.size swapped if (this.#spool === undefined && this.#size > _) throw this.#tooLarge()`,
  ]),
  same('what has no content has no size either: the digest asks for none', [
    `beginDirectory counted _.entry(_, 0)`,
    `beginOther shortened _?.length ?? 0`,
    `beginOther counted _?.length ?? 0`,
    `PlannedTree.#addTo shortened _?.length ?? 0`,
    `PlannedTree.#addTo counted _?.length ?? 0`,
  ]),
  same('what is read before its turn, and how much: a matter of speed and memory', [
    `beginFile compared _.size < readAhead`,
    `readAhead counted 16 * 1024`,
    `readAhead counted 16 * 1024 (2)`,
  ]),
  same('a target that is a file itself has nothing that is read below it', [
    `entriesOf shortened _ === 'file' && _ !== ''`,
  ]),
  same('two questions, each of which refuses with the same error', []),
  same('a piece gets to where the pieces before it are kept with them, or right behind them', [
    `StreamSource.size swapped if (this.#spool === undefined && this.#size > _) { this.#spool = await this.#atTarget(ope…`,
  ]),
  same('every mount point has a character, and `/` is a directory however it is opened', [
    `openUnnamed shortened _ === 'ENOENT' && _ !== '/'`,
  ]),
  same('what was listed just before is a directory however it is opened', [
    `showNewName unflagged constants.O_DIRECTORY of constants.O_DIRECTORY | constants.O_RDONLY`,
  ]),
  same(
    'what stands for an element that is always there, or is of another type than the one it is compared with next, for the compiler',
    [
      `entriesOf counted size: _ = 0`,
      `FileContentSource.#readable shortened _ instanceof DurableWriteError || !isSystemError(_)`,
      `isFilePath shortened typeof _ === 'object' && _ !== null && 'path' in _`,
    ],
  ),
  same('what is not used again, and is made anew: a matter of speed and memory', [
    `howToOpen dropped ways.set(_, _)`,
    `piecesOf dropped buffers.giveBack(_)`,
  ]),
  same('a list of a header alone has no entries, and is treated as none', [`entriesOf compared _.length < headerSize`]),
  same('all that is looked at is on the one file system that is asked about', [
    `isOf shortened _ !== undefined && (_.device ?? _) === _`,
  ]),
  same('what could not be opened fails with the same error where its descriptor is waited for', [
    `OpenDirectories.#hold swallowed throw _`,
  ]),
] as const
