/** Those of adoption, and of what is kept beside a target. */
export const ofKeeping = [
  {
    reason: 'two statements, neither of which reads or writes what the other one writes',
    mutants: [
      `clean.ts: clean swapped left.push(entry)`,
      `clean.ts: clean swapped log.warn({ path, leftover: entry, error: String(error) }, 'could not remove a leftover; t…`,
      `adoption.ts: examineAdoption swapped await planned.close()`,
      `adoption.ts: examineAdoption swapped await parents.close()`,
      `clean.ts: tidy swapped await recordDropRule(area, found)`,
      `history.ts: copyTree swapped await inParallel(files, writers, async (entry) => { const { path } = entry const source =…`,
      `history.ts: copyTree swapped await from.closeAll()`,
      `old-content.ts: byDirectory swapped if (entry.type === 'directory') found.set(entry.path, [])`,
      `old-content.ts: isPartOf swapped if ((await fs.mountsBelow(opened)).length > 0) return true`,
      `old-content.ts: removeEntries.removeFiles swapped await makeWritable(fs, directory)`,
      `site.ts: withLockedTarget swapped await parents.close()`,
      `removal.ts: Removal.#goOn swapped this.#above = await this.#site.ancestors()`,
      `swap-places.ts: removeKnown swapped if (found.type === 'directory') { const opened = await scope.keep(fs.openDirectory(parent…`,
      `history.ts: copyTree swapped for (const { path } of directories) { await to.use(parentOf(path), (parent) => fs.createD…`,
      `kept-beside.ts: listKept swapped for (const name of names) named.push(await keptFor(fs, directory, parent, name, listing))`,
    ],
  },
  {
    reason:
      'what stands for an element that is always there, or is of another type than the one it is compared with next, for the compiler',
    mutants: [
      `adoption.ts: adoptionError shortened advice ?? undefined`,
      `clean.ts: reportAttributes shortened current?.attributes === undefined || tree === undefined`,
      `kept-beside.ts: idOf shortened ownPattern.exec(entry)?.[1] ?? ''`,
    ],
  },
  {
    reason: 'one more of a bound that is a matter of speed and memory: no answer depends on its number',
    mutants: [`history.ts: writers counted writers = 4`],
  },
  {
    reason: 'one millisecond more of a wait, or of the age at which something is read again',
    mutants: [
      `site.ts: withLockedTarget counted lockTimeout = 0`,
      `adoption.ts: lookUnderLock counted site.lock(0, undefined)`,
      `swap-places.ts: inParent counted timeout: 0`,
    ],
  },
  {
    reason: 'what is computed, or looked at, before a refusal or an answer is dropped with it',
    mutants: [
      `removal.ts: Removal.#takeAway swapped await this.#refuseUsed(name)`,
      `rewrite-record.ts: rewriteRecord swapped if (body === undefined) { await syncRecord(site, found, names.record(record.sequence), re…`,
    ],
  },
  {
    reason: 'nothing is held on a file system that has no number: it is that of a path without a mount',
    mutants: [`in-use.ts: usesOf shortened device ?? []`],
  },
  {
    reason: 'what stands for the size of a file that was read from the disk, which always has one',
    mutants: [`adoption-rules.ts: contentsOf counted size = 0`],
  },
]
