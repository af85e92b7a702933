/** Those of sources that read: files, streams, and what is open. */
const file = 'file-source.ts: FileSource'
const stream = 'stream-source.ts: StreamSource'

export const ofReading = [
  {
    reason: '`O_RDONLY` is 0: flags are the same without it',
    mutants: [`file-system.ts: NodeFileSystem.openContent unflagged O_RDONLY of O_RDONLY | O_NONBLOCK`],
  },
  {
    reason: 'what stands for what was found, which is always there: each opening finds it, or throws',
    mutants: [
      `${file}.size counted this.#found?.size ?? 0`,
      `${file}.size shortened this.#found?.size ?? 0`,
      `${file}.read counted this.#found?.size ?? 0`,
      `${file}.read counted this.#found?.size ?? 0 (2)`,
      `${file}.read shortened this.#found?.size ?? 0`,
      `${file}.read shortened this.#found?.size ?? 0 (2)`,
    ],
  },
  {
    reason:
      'two statements, neither of which reads or writes what the other one writes, or that is dropped where the other one throws',
    mutants: [
      `content-source.ts: ContentSource.pieces swapped this.options.signal?.throwIfAborted()`,
      `${stream}.constructor swapped super(target, reading)`,
      `target-content.ts: presentOnce swapped refuseMissed(target, records, missed)`,
      `inspect.ts: readOnce swapped refuseMissed(target, records, missed)`,
      `tree.ts: readTree swapped await files.closeAll()`,
      `tree.ts: addContent swapped digest.content(first.value)`,
      `tree.ts: addContent swapped if (first?.done === false && first.value.length === size) { digest.content(first.value) c…`,
      `tree.ts: addContent swapped digest.content(piece.value)`,
      `planned-tree.ts: PlannedTree.#addTo swapped this.#sizes.set(content, size)`,
      `${stream}.#received swapped if (signal?.aborted || error instanceof DurableWriteError) throw error`,
      `show-in-place.ts: showNewName swapped for (const name of names) showAgain(\`\${uncovered}/\${name}\`, \`\${parent}/\${name}\`)`,
    ],
  },
  {
    reason: 'two conditions, of which one value can meet one only',
    mutants: [`${stream}.size swapped if (this.#spool === undefined && this.#size > most) throw this.#tooLarge()`],
  },
  {
    reason: 'what has no content has no size either: the digest asks for none',
    mutants: [
      `tree.ts: beginDirectory counted digest.entry(head, 0)`,
      `tree.ts: beginOther shortened text?.length ?? 0`,
      `tree.ts: beginOther counted text?.length ?? 0`,
      `planned-tree.ts: PlannedTree.#addTo shortened content?.length ?? 0`,
      `planned-tree.ts: PlannedTree.#addTo counted content?.length ?? 0`,
    ],
  },
  {
    reason: 'what no record tells of is looked at once: nobody compares its number',
    mutants: [
      `target-content.ts: presentOnce counted record?.sequence ?? 0`,
      `target-content.ts: presentOnce shortened record?.sequence ?? 0`,
    ],
  },
  {
    reason: 'what is read before its turn, and how much: a matter of speed and memory',
    mutants: [
      `tree.ts: beginFile compared attributes.size < readAhead`,
      `tree.ts: beginFile negated attributes.size < readAhead`,
      `tree.ts: readAhead counted 16 * 1024`,
      `tree.ts: readAhead counted 16 * 1024 (2)`,
    ],
  },
  {
    reason: 'a target that is a file itself has nothing that is read below it',
    mutants: [`target-content.ts: entriesOf shortened type === 'file' && path !== ''`],
  },
  {
    reason: 'two questions, each of which refuses with the same error',
    mutants: [`${file}.read swapped if (size !== this.#found?.size) throw this.changed()`],
  },
  {
    reason: 'a piece gets to where the pieces before it are kept with them, or right behind them',
    mutants: [
      `${stream}.size swapped if (this.#spool === undefined && this.#size > most) { this.#spool = await this.#atTarget(…`,
    ],
  },
  {
    reason: 'every mount point has a character, and `/` is a directory however it is opened',
    mutants: [`stream-source.ts: openUnnamed shortened code === 'ENOENT' && directory !== '/'`],
  },
  {
    reason: 'what was listed just before is a directory however it is opened',
    mutants: [
      `show-in-place.ts: showNewName unflagged constants.O_DIRECTORY of constants.O_DIRECTORY | constants.O_RDONLY`,
    ],
  },
  {
    reason:
      'what stands for an element that is always there, or is of another type than the one it is compared with next, for the compiler',
    mutants: [
      `target-content.ts: entriesOf counted size = 0`,
      `${file}.#readable shortened error instanceof DurableWriteError || !isSystemError(error)`,
      `content.ts: isFilePath shortened typeof content === 'object' && content !== null && 'path' in content`,
    ],
  },
  {
    reason: 'what is not used again, and is made anew: a matter of speed and memory',
    mutants: [
      `open.ts: howToOpen dropped ways.set(key, way)`,
      `stream-source.ts: piecesOf dropped buffers.giveBack(buffer)`,
    ],
  },
  {
    reason: 'a list of a header alone has no entries, and is treated as none',
    mutants: [`access-list.ts: entriesOf compared list.length < headerSize`],
  },
  {
    reason: 'all that is looked at is on the one file system that is asked about',
    mutants: [`tree-users.ts: isOf shortened inode !== undefined && (holding.device ?? device) === device`],
  },
  {
    reason: 'what could not be opened fails with the same error where its descriptor is waited for',
    mutants: [`open-directories.ts: OpenDirectories.#hold swallowed throw error`],
  },
] as const
