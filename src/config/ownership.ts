import { formatMode, isFileMode, modeLimits, parseOctal } from './mode.js'
import type { ValueType } from './field.js'
import { quote } from '../message-text.js'
import type { Owner } from '../durable/types.js'
import { numberUpTo, textType } from './value-types.js'
import type { Value } from './value.js'

/** A file's mode: permission bits only, `"0600"`. */
export const fileMode = modeWithin(modeLimits.file, '0600')

/** A directory's mode: permission bits, and set-group-ID or sticky where they are set. */
export const directoryMode = modeWithin(modeLimits.directory, '0755')

/** `allowed`: all of the permission bits, and some above them. */
function modeWithin(allowed: number, example: string): ValueType<number> {
  const above = allowed >> 9
  const isOfDirectory = allowed === modeLimits.directory
  const schema = () => ({
    type: 'string',
    // Of a directory no digit has `r` without `x`.
    pattern: `^${above === 0 ? '0?[0-7]' : `[0-${above}]?[0-357]`}{3}$`,
    description: `octal digits, always as a string, at most "${formatMode(allowed)}"`,
  })
  const ofNumber = (number: number, source: string, value: Value): number | undefined => {
    // YAML 1.1 read 0755 as octal, YAML 1.2 reads it as decimal: neither reader can know which the author meant.
    const meaning = source === String(number) ? '' : ` (${number} in YAML 1.2)`
    const octal = /^(?:0o?)?([0-7]{3})$/.exec(source)?.[1]
    const isMode = octal !== undefined && !(isOfDirectory && isFileMode(Number.parseInt(octal, 8)))
    return value.wrong(
      `${source} is a number${meaning}`,
      isMode ? `write it as a string, "0${octal}"` : `write octal digits as a string, as in "${example}"`,
    )
  }
  return textType({ example, schema, ofNumber }, (text, value) => {
    const mode = parseOctal(text)
    if (mode === undefined) {
      return value.wrong(`${quote(text)} is not a mode`, `write octal digits, as in "${example}"`)
    }
    if ((mode & ~allowed) !== 0) {
      return value.wrong(`${quote(text)} has bits that are not allowed here`, `at most "${formatMode(allowed)}"`)
    }
    if (!isOfDirectory || !isFileMode(mode)) return mode
    return value.wrong(
      `with ${quote(text)} somebody may list a directory and open nothing in it`,
      `did you mean fileMode? A directory has x where it has r, as in "${example}"`,
    )
  })
}

/** The highest number is no owner: to chown it means "leave as it is". */
const highestId = 0xffff_fffe

/** UID and GID. */
const ownerPattern = /^(\d{1,10}):(\d{1,10})$/

const inNumbers = 'write numbers, as in "0:0"'

export const owner: ValueType<Owner> = textType(
  {
    example: '0:0',
    schema: () => {
      const id = numberUpTo(highestId)
      return { type: 'string', pattern: `^${id}:${id}$`, description: '"UID:GID"' }
    },
    ofNumber: (number, source, value) => {
      const both = `${source}:${source}`
      const isOwner = ownerPattern.test(both) && number <= highestId
      const advice = isOwner ? `write a string of user and group, "${both}"` : inNumbers
      return value.wrong(`${source} is a number`, advice)
    },
  },
  (text, value) => {
    const found = ownerPattern.exec(text)
    if (found === null) {
      if (!/^[^:\s]+:[^:\s]+$/.test(text) || /^[-\d]+:[-\d]+$/.test(text))
        return value.wrong(`${quote(text)} is not UID:GID`, inNumbers)
      return value.wrong(`${quote(text)} has a name`, `${inNumbers}: the names of a container are not the host's`)
    }
    const [uid, gid] = [Number(found[1]), Number(found[2])]
    if (uid <= highestId && gid <= highestId) return { uid, gid }
    return value.wrong(`${quote(text)} is out of range`, `at most ${highestId}`)
  },
)
