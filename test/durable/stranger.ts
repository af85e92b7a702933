/** Another user's process, which makes entries where anybody may. */
import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Test } from 'tap'

export const needsRoot = { skip: process.geteuid?.() === 0 ? false : 'needs root (setpriv)' }
export const strangersUid = 65_534

/** Perl, since every Debian has it. The holder of a lease is asked before anybody opens the file: F_SETLEASE, F_WRLCK of fcntl(2). */
const makers = {
  file: 'open(my $f, ">", $_) or die $!',
  fifo: 'system("mkfifo", $_) and die',
  link: 'symlink("/etc/hostname", $_) or die $!',
  directory: 'mkdir($_) or die $!',
  socket: 'socket(my $s, 1, 1, 0) or die $!; bind($s, pack("S a108", 1, $_)) or die $!',
  leased: 'open(my $f, ">", $_) or die $!; fcntl($f, 1024, 1) or die "no lease: $!"; push @open, $f',
}

export type StrangersKind = keyof typeof makers
export const strangersKinds = Object.keys(makers) as StrangersKind[]

/** A new sticky directory where anybody may make entries, as /tmp is. */
export function openDirectoryIn(parent: string, name: string): string {
  const path = join(parent, name)
  mkdirSync(path)
  chmodSync(path, 0o1777)
  return path
}

/** Makes an entry of this name in a directory, which is there when this answers, and keeps it open until the end of the test. */
export async function strangerMakes(t: Test, directory: string, name: string, kind: StrangersKind): Promise<void> {
  const script = `$| = 1; $SIG{IO} = "IGNORE"; my @open; for (@ARGV) { ${makers[kind]} } print "made"; sleep`
  const ids = [`--reuid=${strangersUid}`, `--regid=${strangersUid}`, '--clear-groups']
  // The way to the directory may be closed to that user.
  const child = spawn('setpriv', [...ids, 'perl', '-e', script, name], {
    cwd: directory,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
}
