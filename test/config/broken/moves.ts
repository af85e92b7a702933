/** Mistakes in where a directory was before. */
import { broken, type BrokenConfiguration } from '../broken-configuration.js'

const mode = 'mode: "0755"'
const second = 'path: ./second\n'

/** The mistake in the line after the path of the first directory. */
function wrong(mistake: string, from: string, message: string): BrokenConfiguration {
  return broken(mistake, mode, `movedFrom: ${from}`, `8:16: directories[0].movedFrom: ${message}`)
}

export const brokenMoves: readonly BrokenConfiguration[] = [
  wrong(
    'moved from where it is',
    '/srv/certs',
    '"/srv/certs" is the path itself: leave out movedFrom, or name the old path',
  ),
  wrong('moved out of what is to go', '/srv', '"/srv" is a system directory: name a directory of its own below it'),
  wrong(
    'moved up',
    '/srv/certs/tls',
    '"/srv/certs/tls" and the new path "/srv/certs" lie one in the other: choose a new path beside it, and move in two steps',
  ),
  wrong(
    'moved from another target',
    './second',
    '"/configurations/second" is still the target of directories[1]: what moves is no target of its own: remove that',
  ),
  wrong(
    'moved from below another target',
    './second/tls',
    '"/configurations/second/tls" and the target of directories[1] lie one in the other: it would be removed too',
  ),
  {
    mistake: 'a cycle',
    replace: [
      [mode, 'movedFrom: ./second'],
      [second, 'path: ./second\n    movedFrom: /srv/certs\n'],
    ],
    lines: [
      '8:16: directories[0].movedFrom: directories[0] and directories[1] move to each other: name one of them only',
      '19:16: directories[1].movedFrom: directories[1] and directories[0] move to each other: name one of them only',
    ],
  },
  {
    mistake: 'one old path for two',
    replace: [
      [mode, 'movedFrom: /srv/old'],
      [second, 'path: ./second\n    movedFrom: /srv/old\n'],
    ],
    lines: [
      '19:16: directories[1].movedFrom: "/srv/old" moves to directories[0] already: it can move to one path only',
    ],
  },
  broken(
    'a time for an old path that is not named',
    mode,
    'movedFromKeep: 1h',
    '8:20: directories[0].movedFromKeep: movedFromKeep has no effect without movedFrom: add movedFrom: /old/path, or leave it out',
  ),
]
