/**
 * Writes deploy/seccomp/holdfast.json, the system calls that holdfast may make in a pod, from traces of them:
 *
 *   node scripts/seccomp.mjs [--anew] COMMAND...
 *   node scripts/seccomp.mjs --why
 *
 * The first runs COMMAND, such as a suite of tests, under strace, and adds each call that a process of holdfast or a program that it starts (a hook, a
 * plugin) makes and no trace before has shown. The first rule of the profile names what traces have shown, the second what the tables below add.
 * `--anew` begins with an empty profile. A call of the first rule runs without a stop, so that a whole suite takes little more than its own time,
 * and several runs unite what they show. A call that only a test makes is printed, and not added. `--why` prints each call with its reason.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const project = join(import.meta.dirname, '..')
const profile = join(project, 'deploy/seccomp/holdfast.json')

/** What no trace adds: other ways to more rights, and into other processes. Tests and their helpers may make them. */
const never = [
  ...['mount', 'umount2', 'move_mount', 'open_tree', 'fsopen', 'fsconfig', 'fsmount', 'fspick', 'mount_setattr'],
  ...['unshare', 'setns', 'pivot_root', 'chroot', 'personality', 'mknod', 'mknodat', 'open_by_handle_at'],
  ...['ptrace', 'process_vm_readv', 'process_vm_writev', 'process_madvise', 'kcmp', 'pidfd_getfd', 'perf_event_open'],
  ...['bpf', 'seccomp', 'userfaultfd', 'io_uring_setup', 'io_uring_enter', 'io_uring_register'],
  ...[
    'keyctl',
    'add_key',
    'request_key',
    'fanotify_init',
    'fanotify_mark',
    'quotactl',
    'quotactl_fd',
    'acct',
    'syslog',
  ],
  ...['init_module', 'finit_module', 'delete_module', 'kexec_load', 'kexec_file_load', 'reboot', 'swapon', 'swapoff'],
  ...['settimeofday', 'clock_settime', 'clock_adjtime', 'adjtimex', 'sethostname', 'setdomainname', 'iopl', 'ioperm'],
]

/** What no trace has shown, with the reason why it is allowed. A call that one shows leaves this table: a test looks for it. */
const beyondTraces = {
  'V8 guards what it compiles, on processors with memory keys': 'pkey_free pkey_mprotect',
  'the container runtime, between the filter and the program':
    'capset fchdir fstatfs nanosleep setgid setgroups setuid',
  'clocks of machines on which the vDSO asks the kernel': 'clock_getres clock_gettime getcpu gettimeofday time',
  'the C library asks name servers, and the kernel for addresses':
    'getpeername recvfrom recvmmsg recvmsg sendmmsg sendmsg',
  'other ways to files: of libuv, of musl and of an older glibc':
    'chmod chown faccessat2 fchmodat fchmodat2 fchownat futimesat lchown link lstat open preadv preadv2 pselect6 pwrite64 ' +
    'pwritev pwritev2 select stat truncate utimensat',
  'memory, threads and signals, by the state of the machine':
    'membarrier mincore mremap rt_sigpending rt_sigsuspend rt_sigtimedwait waitid',
  'shells and other programs of exec hooks':
    'alarm fallocate fdatasync getitimer getpgid getpgrp getpriority pause getresgid getresuid getsid sched_setaffinity setitimer ' +
    'setpgid setpriority setregid setresgid setresuid setreuid signalfd4 splice syncfs tee timerfd_create timerfd_gettime ' +
    'timerfd_settime times',
}

const namesBeyondTraces = Object.values(beyondTraces).flatMap((names) => names.split(' '))

/** What arm64 has in the place of old calls of x64. */
const onArm64 = {
  access: ['faccessat', 'faccessat2'],
  chmod: ['fchmodat'],
  chown: ['fchownat'],
  dup2: ['dup3'],
  epoll_create: ['epoll_create1'],
  epoll_wait: ['epoll_pwait'],
  eventfd: ['eventfd2'],
  fork: ['clone'],
  getdents: ['getdents64'],
  getrlimit: ['prlimit64'],
  inotify_init: ['inotify_init1'],
  lchown: ['fchownat'],
  link: ['linkat'],
  lstat: ['newfstatat'],
  mkdir: ['mkdirat'],
  open: ['openat'],
  pipe: ['pipe2'],
  poll: ['ppoll'],
  readlink: ['readlinkat'],
  rename: ['renameat', 'renameat2'],
  rmdir: ['unlinkat'],
  select: ['pselect6'],
  setrlimit: ['prlimit64'],
  signalfd: ['signalfd4'],
  stat: ['newfstatat'],
  symlink: ['symlinkat'],
  unlink: ['unlinkat'],
  utime: ['utimensat'],
  utimes: ['utimensat'],
}

/** Calls whose arguments count, or that fail in a way of their own: no trace of names decides about them. */
const newNamespaces = 0x7e020000
const ruled = {
  // A new thread or process, in no new namespace.
  clone: {
    action: 'SCMP_ACT_ALLOW',
    args: [{ index: 0, value: newNamespaces, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }],
  },
  // Its flags lie in memory, which no filter reads: the C library takes clone where the kernel does not know it (ENOSYS).
  clone3: { action: 'SCMP_ACT_ERRNO', errnoRet: 38 },
}
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. */
const families = [1, 2, 10, 16]

/** What rules of their own allow. */
const special = [...Object.keys(ruled), 'socket']

/** The names that a profile allows whatever their arguments are: those that traces have shown, and the others. */
export function allowedBy({ syscalls }) {
  const [shown = [], others = []] = syscalls
    .filter(({ action, args }) => action === 'SCMP_ACT_ALLOW' && !args)
    .map(({ names }) => names)
  return { shown, others }
}

/** What functions of the C library call that native/ binds, where it is not the call of their name. */
const behind = {
  eventfd: ['eventfd2'],
  malloc_trim: ['madvise'],
  poll: ['poll', 'ppoll'],
  setrlimit: ['prlimit64'],
  waitpid: ['wait4'],
  // By its number: libc.ts has a table of these.
  syscall: [],
}

/** The system calls that native/ makes: rare ones show in few traces. */
export function nativeCalls() {
  const text = readdirSync(join(project, 'native')).map((name) => readFileSync(join(project, 'native', name), 'utf8'))
  const found = (pattern) => text.flatMap((one) => [...one.matchAll(pattern)].map(([, name]) => name))
  const functions = found(/\bdeclare\('(\w+)'/g).flatMap((name) => behind[name] ?? [name])
  const calls = [...functions, ...found(/^ {2}(\w+): \{ x64: \d+, arm64: \d+ \},$/gm)]
  return [...new Set(calls)].filter((name) => !never.includes(name)).sort()
}

/**
 * Why the profile allows each call that no trace has shown; undefined: for no reason.
 * @returns {Map<string, string | undefined>}
 */
export function reasons({ shown, others }) {
  const inNative = new Set(nativeCalls())
  const why = (name) => {
    if (inNative.has(name)) return 'native/ calls it'
    const reason = Object.keys(beyondTraces).find((reason) => beyondTraces[reason].split(' ').includes(name))
    const old = Object.keys(onArm64).find((old) => onArm64[old].includes(name) && [...shown, ...others].includes(old))
    return reason ?? (old && `arm64 has it in the place of ${old}`)
  }
  return new Map(others.map((name) => [name, why(name)]))
}

/** Names of the tables that a trace has shown since. */
export function shownSince({ shown }) {
  return namesBeyondTraces.filter((name) => shown.includes(name))
}

function profileOf(traced) {
  const known = new Set([...traced, ...nativeCalls(), ...namesBeyondTraces])
  const names = new Set([...known, ...[...known].flatMap((name) => onArm64[name] ?? [])])
  const listed = [...names].filter((name) => !never.includes(name) && !special.includes(name)).sort()
  const shown = new Set(traced)
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: 1,
    architectures: ['SCMP_ARCH_X86_64', 'SCMP_ARCH_AARCH64'],
    syscalls: [
      { names: listed.filter((name) => shown.has(name)), action: 'SCMP_ACT_ALLOW' },
      { names: listed.filter((name) => !shown.has(name)), action: 'SCMP_ACT_ALLOW' },
      ...Object.entries(ruled).map(([name, rule]) => ({ names: [name], ...rule })),
      ...families.map((value) => ({
        names: ['socket'],
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 0, value, op: 'SCMP_CMP_EQ' }],
      })),
    ],
  }
}

/** Node with holdfast behind its flags, or the executable; and no program that starts these for a test, as a shell or strace does. */
const ofHoldfast =
  /^"[^"]*\/node", \["[^"]*"(?:, "(?:-|file:)[^"]*")*, "[^"]*\/bin\/holdfast\.js"|^"[^"]*\/holdfast(?:\.js)?",/

/** One program in a process: the process makes its calls from one execve to the next. */
class Program {
  calls = new Set()
  constructor(before, command) {
    this.before = before
    this.command = command
  }
  /** What was executed last, for people. */
  get started() {
    return this.command?.slice(0, 300) ?? this.before?.started ?? ''
  }
  /** undefined: it does not count. What holdfast starts counts as holdfast; of a test, which runs most commands in its process, it alone. */
  get kind() {
    if (this.command === undefined) return this.before?.kind
    if (ofHoldfast.test(this.command)) return 'holdfast'
    if (/^"[^"]*\/node", .*"[^"]*\bdist\/test\//.test(this.command)) return 'test'
    return this.before?.kind === 'holdfast' ? 'holdfast' : undefined
  }
}

/** The programs that strace's lines show. */
async function programsOf(lines) {
  const all = []
  const running = new Map()
  const unfinished = new Map()
  const begin = (before, command) => {
    const program = new Program(before, command)
    all.push(program)
    return program
  }
  const of = (pid) => {
    if (!running.has(pid)) running.set(pid, begin(undefined))
    return running.get(pid)
  }
  for await (const line of lines) {
    const [, pid, text] = /^(\d+) +(.*)$/.exec(line) ?? []
    if (text === undefined) continue
    if (text.startsWith('+++')) {
      running.delete(pid)
      continue
    }
    const resumed = /^<\.\.\. (\w+) resumed>(.*)$/.exec(text)
    const whole = resumed ? `${unfinished.get(pid) ?? `${resumed[1]}(`}${resumed[2]}` : text
    const name = /^(\w+)\(/.exec(whole)?.[1]
    if (name === undefined) continue
    if (whole.endsWith('<unfinished ...>')) unfinished.set(pid, whole.replace(/ *<unfinished \.\.\.>$/, ''))
    of(pid).calls.add(name)
    if (whole.endsWith('<unfinished ...>')) continue
    const child = /^(?:v?fork|clone3?)\(.* = (\d+)/.exec(whole)?.[1]
    // Lines of a child may come before the line that says whose child it is.
    if (child !== undefined) of(child).before ??= of(pid)
    const command = /^execve\((.*) = 0$/.exec(whole)?.[1]
    if (command !== undefined) running.set(pid, begin(of(pid), command))
  }
  return all
}

async function trace(known, command) {
  // These tell whose process it is. `?`: this strace may not know the name.
  const followed = ['execve', 'clone', 'clone3', 'fork', 'vfork']
  const passed = known.filter((name) => !followed.includes(name)).map((name) => `?${name}`)
  const filter = passed.length > 0 ? ['--seccomp-bpf', '-e', `trace=!${passed.join()}`] : []
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-seccomp-'))
  const pipe = join(directory, 'trace')
  try {
    execFileSync('mkfifo', [pipe])
    const args = [
      '-f',
      '-I',
      'waiting',
      '-qqq',
      '-s',
      '300',
      '-e',
      'signal=none',
      ...filter,
      '-o',
      pipe,
      '--',
      ...command,
    ]
    const strace = spawn('strace', args, { stdio: 'inherit' })
    const ended = once(strace, 'close')
    // strace hands it on to the command: what was traced until then counts.
    process.once('SIGTERM', () => strace.kill())
    const programs = await programsOf(createInterface({ input: createReadStream(pipe) }))
    const [code] = await ended
    return { programs, code }
  } finally {
    rmSync(directory, { recursive: true })
  }
}

function printReasons() {
  const allowed = allowedBy(JSON.parse(readFileSync(profile, 'utf8')))
  const rows = [...allowed.shown.map((name) => [name, 'a trace has shown it']), ...reasons(allowed)]
  for (const [name, why] of rows) console.log(`${name.padEnd(20)}${why}`)
  return 0
}

async function main(args) {
  if (args[0] === '--why') return printReasons()
  const anew = args[0] === '--anew'
  const command = anew ? args.slice(1) : args
  if (command.length === 0) {
    process.stderr.write('usage: node scripts/seccomp.mjs [--anew] COMMAND... | --why\n')
    return 2
  }
  const none = { shown: [], others: [] }
  const before = anew || !existsSync(profile) ? none : allowedBy(JSON.parse(readFileSync(profile, 'utf8')))
  const { programs, code } = await trace(before.shown, command)
  const counted = programs.filter(({ kind }) => kind === 'holdfast')
  const calls = new Map(counted.flatMap((program) => [...program.calls].map((name) => [name, program.started])))
  const made = profileOf([...before.shown, ...calls.keys()])
  const after = allowedBy(made)
  writeFileSync(profile, `${JSON.stringify(made, undefined, 2)}\n`)
  const told = (names) => [...names].sort().join(', ') || 'none'
  for (const name of after.shown.filter((name) => !before.shown.includes(name)))
    console.log(`${name}: ${calls.get(name)}`)
  const tests = programs.filter(({ kind }) => kind === 'test').flatMap((program) => [...program.calls])
  console.log(
    `${counted.length} programs of holdfast; ${after.shown.length} calls are traced, ${after.others.length} are not`,
  )
  console.log(`left out: ${told([...calls.keys()].filter((name) => never.includes(name)))}`)
  const ofTests = new Set(tests.filter((name) => !after.shown.includes(name) && !special.includes(name)))
  console.log(`of tests alone: ${told(ofTests)}`)
  return code
}

if (process.argv[1] === import.meta.filename) process.exitCode = await main(process.argv.slice(2))
