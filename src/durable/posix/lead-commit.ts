import * as fs from 'node:fs'
import { pause } from '../../deadline.js'
import { toError } from '../../errors.js'
import type { Descriptor, Outcomes } from '../file-system.js'
import { call } from './calls.js'
import { fsync } from './sync.js'

/*
 * For a large barrier on ext4. Its journal writes the commit record a fraction of a millisecond after the first fsync came;
 * fsyncs that come later each issue a flush of their own, and the block layer merges at most as many as it has tags: 200
 * files cost 8 to 10 flushes, where 6 do (measured on a disk whose flush takes 10 ms, and with the kernel's jbd2
 * tracepoints; on a fast disk it costs a few more than it saves). So one directory is synced first, and while its commit is under way the staged files are touched, which
 * puts each into the next transaction: all the fsyncs then wait for that one commit. Only a hint: what makes anything
 * durable are the fsyncs that follow.
 */

/** statfs(2)'s f_type of ext2, ext3 and ext4. */
const ext4Magic = 0xef53
/** Up to here, late fsyncs share two flushes, and a leading commit would be one more. */
const largeBarrier = 128
/** Milliseconds in which the leading commit has surely started. */
const headStart = 1

/**
 * Runs the barrier behind a leading commit where that helps. `own` are files that this process has just written: only
 * those are touched, with the mode that they have.
 */
export async function behindLeadingCommit(
  descriptors: readonly Descriptor[],
  own: ReadonlySet<Descriptor>,
  barrier: () => Promise<Outcomes>,
): Promise<Outcomes> {
  // The first staged directory, so that there is something to commit.
  const first = descriptors.findIndex((descriptor) => !own.has(descriptor))
  const leader = descriptors[first]
  if (descriptors.length <= largeBarrier || leader === undefined || !(await isExt4(leader))) return barrier()
  const leading = fsync(leader).then(() => undefined, toError)
  await pause(headStart)
  const staged = descriptors.filter((descriptor) => own.has(descriptor))
  await Promise.allSettled(staged.map(touch))
  const outcomes = await barrier()
  // The leading fsync reports the error once; a second fsync that succeeds does not undo it.
  outcomes[first] = (await leading) ?? outcomes[first]
  return outcomes
}

function touch(descriptor: Descriptor): Promise<void> {
  const { mode } = fs.fstatSync(descriptor)
  return call(
    () => `descriptor ${descriptor}`,
    (done) => fs.fchmod(descriptor, mode, done),
  )
}

async function isExt4(descriptor: Descriptor): Promise<boolean> {
  const path = `/proc/self/fd/${descriptor}`
  const { type } = await call<fs.StatsFs>(
    () => path,
    (done) => fs.statfs(path, done),
  )
  return type === ext4Magic
}
