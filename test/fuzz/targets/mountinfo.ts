import { mountAbove, parseMount, type MountDetails } from '../../../src/mountinfo.js'
import { demand, type Target } from '../target.js'

/** The kernel writes no line of another form (fs/proc_namespace.c, show_mountinfo). Bytes that are no UTF-8 are lost here. */
const kernels =
  /^\d{1,9} \d{1,9} (?:0|[1-9]\d{0,3}):(?:0|[1-9]\d{0,6}) \/[^ \ufffd]* \/[^ \ufffd]* [a-z][^ \ufffd]*(?: [a-z_]+(?::\d+)?)* - [^ \ufffd]+ [^ \ufffd]+ [^ \ufffd\r\n]+$/

/** It writes no other escapes (mangle). */
const otherEscape = /\\(?!040|011|012|043|134)/

export const mountinfo: Target<MountDetails> = {
  name: 'mountinfo',
  files: ['mountinfo.js'],
  longest: 16_384,
  words: [
    ' - ',
    '\\040',
    '\\011',
    '\\012',
    '\\134',
    '\\043',
    'shared:1',
    'master:2',
    'propagate_from:3',
    'unbindable',
    'ext4',
    '/dev/sda1',
    'rw,relatime',
    '0:23',
    '/',
    ' ',
  ],
  read(input) {
    const [line = ''] = input.toString().split('\n')
    const mount = parseMount(line)
    demand(mountAbove(mount.mountPoint, [mount]) === mount, 'a mount is above its own mount point')
    return mount
  },
  go: {
    as: 'mountinfo',
    contradiction: (input, ours, { error, value }) => {
      const text = input.toString()
      if (ours === undefined || error !== undefined || !kernels.test(text) || otherEscape.test(text)) return undefined
      const theirs = value as Record<string, unknown>
      const { id, device, root, mountPoint, type, source, options, receives } = ours
      const optional = String(theirs['optional']).split(' ')
      const pairs = [
        [id, theirs['id']],
        [device, theirs['device']],
        [root, theirs['root']],
        [mountPoint, theirs['mountPoint']],
        [type, theirs['type']],
        [source, theirs['source']],
        [options.join(','), theirs['options']],
        [receives, optional.some((field) => /^(?:shared|master):/.test(field))],
      ]
      const wrong = pairs.find(([own, go]) => own !== go)
      return wrong && `${JSON.stringify(wrong[0])}, and to Go ${JSON.stringify(wrong[1])}`
    },
  },
}
