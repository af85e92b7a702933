/** The program that is asked, in a root of its own: disks from a file, answers to standard output. */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { answersOf } from './ask.js'
import { readGolden } from './disk.js'
import { refuseOtherRoots } from './own-root.js'

refuseOtherRoots()

// The machine of a golden disk has the processes that its root sees, and no others: which of this machine's may be looked at, no disk tells.
const { readlinkSync } = fs
const readLink = (path: string): string => (path === '/proc/self/ns/pid' ? 'pid:[4026531836]' : readlinkSync(path))
fs.readlinkSync = readLink as typeof readlinkSync
syncBuiltinESMExports()

process.umask(0o022)
const answers = []
for (const [number, disk] of readGolden(process.argv[2]).entries()) answers.push(await answersOf(disk, number))
console.log(JSON.stringify(answers))
