import { clock } from '../../clock.js'
import { pause } from '../../deadline.js'
import { failureOf } from '../../errors.js'
import { fsyncAll, type TargetNames, remove, Scope, setMetadata, readWhole } from '../path/index.js'
import { DurableWriteError } from '../errors.js'
import type { Attributes, Descriptor, FileSystem } from '../file-system.js'
import { type Added, type Appendix, encodeAppendix, isBody, newerObjects } from './record.js'
import { knownFields } from './record-fields.js'
import { encodeLine, type Line, readLines } from './record-lines.js'
import type { RecordedObject } from '../types.js'

/*
 * Every line that is added to a record comes through here. A write that stops in the middle of a line (a full disk kept 40 bytes of 83)
 * leaves a torn one, and a reader that stops at the first damaged line, as that of 0.2.0 does, would see nothing that follows it. So each
 * call looks first: a record that is damaged, or has too many lines, is written anew, and takes the old one's name in one rename.
 *
 * Processes that add lines exclude each other by a flock on the record itself. Only the holder of the target's lock writes a record anew:
 * nobody else removes records, so that the rename brings none back.
 */

/** Where a record is. */
export interface RecordArea {
  readonly fs: FileSystem
  readonly parent: Descriptor
  readonly names: TargetNames
}

/** Bytes that the lines of a record may have beside its first, beyond the length of that: the objects in them are as long as those in it. */
const mostAdded = 64 * 1024

/** Milliseconds to wait for another process that adds a line, or that publishes. */
export const appendPatience = 5_000
const pollInterval = 20

/** Adds a line to a record, under the target's lock: readers see it from then on. @throws what the system answers, and ENOENT where it has gone */
export async function append(area: RecordArea, name: string, appendix: Appendix): Promise<void> {
  await add(area, name, encodeAppendix(appendix), true)
}

/** The same without the target's lock. False, and nothing is done, where the record must be written anew, which needs it. */
export async function tryAppend(area: RecordArea, name: string, appendix: Appendix): Promise<boolean> {
  return add(area, name, encodeAppendix(appendix), false)
}

async function add(area: RecordArea, name: string, line: Uint8Array, mayRewrite: boolean): Promise<boolean> {
  const { fs, parent } = area
  const scope = new Scope(fs)
  try {
    const { file, attributes } = await openAlone(scope, parent, name)
    const content = await readWhole(fs, file, attributes.size)
    const { lines, isDamaged } = readLines(content.toString('utf8'))
    const [first] = lines
    const most = 2 * Buffer.byteLength(first?.text ?? '') + mostAdded
    if (!isDamaged && content.length + line.length <= most) {
      await addLine(fs, file, line, content.length)
      return true
    }
    if (!mayRewrite) return false
    if (first === undefined) throw damaged(name, 'its first line is damaged')
    const anew = Buffer.concat([...compact(first, lines.slice(1)).map((text) => Buffer.from(text)), line])
    await rewrite(scope, area, name, anew, attributes)
    return true
  } finally {
    await scope.closeAll()
  }
}

/** Writes a line at the end of a record that has `size` bytes. @throws where it does not stand there as a whole afterwards */
export async function addLine(fs: FileSystem, file: Descriptor, line: Uint8Array, size: number): Promise<void> {
  await fs.write(file, line)
  if ((await fs.attributes(file)).size !== size + line.length)
    throw damaged('the record', 'another program wrote to it meanwhile')
}

/** Opens a record that no other process adds to until the scope ends. One that was written anew meanwhile has another inode: that is opened. */
async function openAlone(
  scope: Scope,
  parent: Descriptor,
  name: string,
): Promise<{ file: Descriptor; attributes: Attributes }> {
  const deadline = clock.now() + appendPatience
  for (;;) {
    const file = await scope.keep(scope.fs.openAppend(parent, name))
    while (!scope.fs.tryLock(file)) {
      if (clock.now() >= deadline) throw busy(name)
      await pause(pollInterval)
    }
    const attributes = await scope.fs.attributes(file)
    if (attributes.links > 0) return { file, attributes }
    await scope.close(file)
  }
}

/**
 * Puts this text in the place of a record. It is as durable as before: the new file is synced before it has the name, and which of the two
 * a power cut leaves makes no difference to what is durable.
 */
async function rewrite(
  scope: Scope,
  { fs, parent, names }: RecordArea,
  name: string,
  content: Uint8Array,
  { uid, gid, mode }: Attributes,
): Promise<void> {
  const staging = names.staging(fs.random())
  const file = await scope.keep(fs.createFile(parent, staging))
  const failure = await failureOf(
    (async () => {
      await fs.write(file, content)
      await setMetadata(fs, file, { target: name, mode, owner: { uid, gid } })
      await fsyncAll(fs, [file])
      await fs.rename(parent, staging, parent, name, 'replace')
    })(),
  )
  if (failure === undefined) return
  // What stays all the same has a staging name, and goes with the next recovery.
  await failureOf(remove(fs, parent, staging))
  throw failure
}

/** Fields of which the last line says it all. */
const lastCounts: Readonly<Record<Exclude<keyof Added, 'hook' | 'objects'>, true>> = {
  settled: true,
  within: true,
  attributes: true,
  keepsAttributes: true,
  onDrop: true,
  agent: true,
}

/** The first line and those that still say something, in their order. Lines of a later version stay, each once. */
function compact(first: Line, added: readonly Line[]): string[] {
  const kept = new Map<string, string>()
  let objects: RecordedObject[] = []
  for (const { text, value } of added) {
    if (isBody(value)) continue
    const fields = Object.entries(value)
    const [field, said] = fields.length === 1 ? (fields[0] ?? []) : []
    if (field === 'objects' && knownFields.objects(said)) {
      objects = newerObjects(objects, said as RecordedObject[])
      continue
    }
    const key = field !== undefined && Object.hasOwn(lastCounts, field) ? field : text
    kept.delete(key)
    kept.set(key, text)
  }
  const newest = objects.length > 0 ? [Buffer.from(encodeLine({ objects })).toString('utf8')] : []
  return [first.text, ...kept.values(), ...newest]
}

function damaged(name: string, why: string): DurableWriteError {
  return new DurableWriteError(`could not add a line to ${name}: ${why}`, {
    code: 'EIO',
    syscall: 'write',
    path: name,
    state: 'the lines before it count',
  })
}

function busy(name: string): DurableWriteError {
  return new DurableWriteError(`another process adds a line to ${name}`, {
    code: 'EAGAIN',
    syscall: 'flock',
    path: name,
    reason: 'Busy',
    state: 'nothing was changed',
    advice: 'try again when it is done',
  })
}
