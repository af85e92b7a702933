/** Those of adoption, and of what is kept beside a target. */
const durable = 'src/durable'

export const ofKeeping = [
  {
    reason: 'two statements, neither of which reads or writes what the other one writes',
    mutants: [
      `${durable}/relocate-by-hand.ts: refuseOthers swapped for (const [path, record] of [ [from, old], [to, now], ] as const) { const { publisher } …`,
      `${durable}/relocate-by-hand.ts: refuseOthers swapped if (elsewhere !== undefined && elsewhere !== to) throw refuse( \`\${from} moves to \${elsewh…`,
      `${durable}/relocate-by-hand.ts: contentOfOld swapped if (tree === undefined) throw unfit(\`\${from} is not there any more\`, { ...{ code: 'ENOENT…`,
      `${durable}/relocation.ts: Move.drain.confirm swapped if (movedTo !== to) throw new NotNow(from, this.#takenBack)`,
      `${durable}/adoption-rules.ts: checkFileSystem swapped if (cannotExchange.has(type)) return refused(\`\${type} cannot exchange two names in one st…`,
      `${durable}/adoption-rules.ts: checkOwners swapped for (const entry of [parent, ...tree.entries]) { if (entry.type === 'symlink') continue c…`,
      `${durable}/adoption-rules.ts: checkOwners swapped if (!users.has(entry.uid)) return refused( \`user \${entry.uid} owns \${shown}, and may writ…`,
      `${durable}/adoption-rules.ts: checkWriters swapped if (record !== undefined) { return refused( \`holdfast itself publishes something in it ($…`,
      `${durable}/clean.ts: clean swapped left.push(entry)`,
      `${durable}/clean.ts: clean swapped log.warn({ path, leftover: entry, error: String(error) }, 'could not remove a leftover; t…`,
      `${durable}/adoption.ts: examineAdoption swapped await planned.close()`,
      `${durable}/adoption.ts: examineAdoption swapped await parents.close()`,
      `${durable}/clean.ts: recover swapped await recordDropRule(area, found)`,
      `${durable}/history.ts: copyTree swapped await inParallel(files, writers, async (entry) => { const { path } = entry const source =…`,
      `${durable}/history.ts: copyTree swapped await from.closeAll()`,
      `${durable}/old-content.ts: byDirectory swapped if (entry.type === 'directory') found.set(entry.path, [])`,
      `${durable}/old-content.ts: isPartOf swapped if ((await fs.mountsBelow(opened)).length > 0) return true`,
      `${durable}/old-content.ts: removeEntries.removeFiles swapped await makeWritable(fs, directory)`,
      `${durable}/past.ts: pruneHistory swapped await parents.close()`,
      `${durable}/removal.ts: Removal.close swapped await this.#parents.close()`,
      `${durable}/removal.ts: Removal.#goOn swapped this.#above = await this.#site.ancestors()`,
      `${durable}/rewrite-record.ts: rewriteRecord swapped await parents.close()`,
      `${durable}/swap-places.ts: removeKnown swapped if (found.type === 'directory') { const opened = await scope.keep(fs.openDirectory(parent…`,
      `${durable}/history.ts: copyTree swapped for (const { path } of directories) { await to.use(parentOf(path), (parent) => fs.createD…`,
      `${durable}/kept-beside.ts: listKept swapped for (const name of names) named.push(await keptFor(fs, parent, name, listing))`,
      `${durable}/past.ts: pruneHistory swapped if (records.valid.some((record) => holdOf({ record }, fs.now()) !== undefined)) return 0`,
    ],
  },
  {
    reason:
      'what stands for an element that is always there, or is of another type than the one it is compared with next, for the compiler',
    mutants: [
      `${durable}/adoption.ts: adoptionError shortened advice ?? undefined`,
      `${durable}/clean.ts: reportAttributes shortened current?.attributes === undefined || tree === undefined`,
      `${durable}/kept-beside.ts: idOf shortened ownPattern.exec(entry)?.[1] ?? ''`,
    ],
  },
  {
    reason: 'one more of a bound that is a matter of speed and memory: no answer depends on its number',
    mutants: [`${durable}/history.ts: writers counted writers = 4`],
  },
  {
    reason: 'one millisecond more of a wait, or of the age at which something is read again',
    mutants: [
      `${durable}/past.ts: pruneHistory counted lockTimeout = 0`,
      `${durable}/removal.ts: Removal.#lock counted lockTimeout: timeout = 0`,
      `${durable}/rewrite-record.ts: rewriteRecord counted lockTimeout = 0`,
      `${durable}/adoption.ts: lookUnderLock counted timeout: 0`,
      `${durable}/swap-places.ts: inParent counted timeout: 0`,
    ],
  },
  {
    reason: 'what is computed, or looked at, before a refusal or an answer is dropped with it',
    mutants: [
      `${durable}/removal.ts: Removal.#goOn swapped if (link && !leaves) await this.#refuseUsed(this.#site.name)`,
      `${durable}/removal.ts: Removal.#takeAway swapped await this.#refuseUsed(name)`,
      `${durable}/rewrite-record.ts: rewriteRecord swapped if (body === undefined) { await syncRecord(site, found, names.record(record.sequence), re…`,
    ],
  },
  {
    reason: 'nothing is held on a file system that has no number: it is that of a path without a mount',
    mutants: [`${durable}/in-use.ts: usesOf shortened device ?? []`],
  },
  {
    reason: 'what stands for the size of a file that was read from the disk, which always has one',
    mutants: [`${durable}/taken-over.ts: contentsOf counted size = 0`],
  },
]
