import { same } from './listed.js'

/** Those of adoption, and of the files that stay beside a target. */
export const ofKeeping = [
  same('two statements, neither of which reads or writes what the other one writes', [
    `clean swapped _.push(_)`,
    `examineAdoption swapped await _.close()`,
    `copyTree swapped await inParallel(_, writers, async (_) => { const { path: _ } = _ await _.useFile(_, asyn…`,
    `copyTree swapped await _.closeAll()`,
    `byDirectory swapped if (_.type === 'directory') _.set(_.path, [])`,
    `removeEntries.removeFiles swapped await makeWritable(_, _)`,
    `Removal.#finish swapped await settle(this.#area, [this.#parent, ...this.#above])`,
    `Removal.#goOn swapped this.#above = await this.#site.ancestors()`,
    `removeKnown swapped if (_.type === 'directory') { const _ = await _.keep(_.openDirectory(_, _)) await refuseM…`,
    `copyTree swapped for (const { path: _ } of _) { await _.use(parentOf(_), (_) => _.createDirectory(_, nameO…`,
  ]),
  same(
    'what stands for an element that is always there, or is of another type than the one it is compared with next, for the compiler',
    [`adoptionError shortened _ ?? undefined`, `idOf shortened ownPattern.exec(_)?.[1] ?? ''`],
  ),
  same('one more of a bound that is a matter of speed and memory: no answer depends on its number', [
    `writers counted writers = 4`,
  ]),
  same('one millisecond more of a wait, or of the age at which something is read again', [
    `withLockedTarget counted lockTimeout: _ = 0`,
    `lookUnderLock counted _.lock(0, undefined)`,
    `underLock counted timeout: 0`,
  ]),
  same('nothing is held on a file system that has no number: it is that of a path without a mount', [
    `usesOf shortened _ ?? []`,
  ]),
  same('what stands for the size of a file that was read from the disk, which always has one', [
    `contentsOf counted size: _ = 0`,
  ]),
]
