/**
 * Writes deploy/seccomp/holdfast.json, the system calls that holdfast may make in a pod, from a trace of them:
 *
 *   node scripts/seccomp.mjs [--anew] COMMAND...
 *
 * runs COMMAND, such as a suite of tests, under strace, and adds each call that a process of holdfast, a program that it starts (a hook, a plugin) or
 * a process of tests makes and the profile lacks. `--anew` begins with an empty profile. What the profile has already runs without a stop, so that a
 * whole suite takes little more than its own time. The tables below say what no trace adds, and what no trace shows.
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

/** What no trace shows, with the reason. */
const beyondTraces = {
  'the kernel goes on with a call that a signal or a debugger has stopped': ['restart_syscall', 'rt_sigreturn'],
  'V8 guards what it compiles, on processors with memory keys': ['pkey_alloc', 'pkey_free', 'pkey_mprotect'],
  'the container runtime, between the filter and the program': [
    ...['capget', 'capset', 'fstatfs', 'getppid', 'nanosleep', 'setgid', 'setgroups', 'setuid', 'tgkill'],
    ...['execve', 'exit', 'exit_group', 'fchdir', 'getegid', 'geteuid', 'getgid', 'getuid', 'sched_yield'],
  ],
  'clocks of machines on which the vDSO asks the kernel': [
    'clock_getres',
    'clock_gettime',
    'getcpu',
    'gettimeofday',
    'time',
  ],
  'the C library asks name servers, and the kernel for addresses': [
    ...['getpeername', 'recvfrom', 'recvmmsg', 'recvmsg', 'sendmmsg', 'sendmsg', 'sendto'],
  ],
  'libuv’s other ways to files': [
    ...[
      'chmod',
      'chown',
      'fallocate',
      'fchmodat',
      'fchmodat2',
      'fchownat',
      'futimesat',
      'lchown',
      'link',
      'lstat',
      'open',
    ],
    ...['preadv', 'preadv2', 'pwrite64', 'pwritev', 'pwritev2', 'sendfile', 'stat', 'symlink', 'truncate', 'utimensat'],
  ],
  'memory, threads and signals, by the state of the machine': [
    ...[
      'membarrier',
      'mincore',
      'mremap',
      'rt_sigpending',
      'rt_sigsuspend',
      'rt_sigtimedwait',
      'sigaltstack',
      'waitid',
    ],
  ],
  'shells and other programs of exec hooks': [
    ...[
      'alarm',
      'getitimer',
      'getpgid',
      'getpgrp',
      'getpriority',
      'getresgid',
      'getresuid',
      'getsid',
      'pselect6',
      'select',
    ],
    ...['setitimer', 'setpgid', 'setpriority', 'setresgid', 'setresuid', 'splice', 'tee', 'times', 'timerfd_create'],
    ...[
      'timerfd_gettime',
      'timerfd_settime',
      'signalfd4',
      'setregid',
      'setreuid',
      'sched_setaffinity',
      'vfork',
      'wait4',
    ],
  ],
  'barriers where the kernel takes no asynchronous I/O': ['fdatasync', 'fsync', 'sync_file_range', 'syncfs'],
}

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

/** The names that a profile allows whatever their arguments are. */
function allowedBy({ syscalls }) {
  return syscalls.filter(({ action, args }) => action === 'SCMP_ACT_ALLOW' && !args).flatMap(({ names }) => names)
}

/** What functions of the C library call that native/ binds, where it is not the call of their name. */
const behind = {
  eventfd: ['eventfd2'],
  malloc_trim: ['madvise'],
  poll: ['poll', 'ppoll'],
  setrlimit: ['prlimit64'],
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

function profileOf(traced) {
  const special = [...Object.keys(ruled), 'socket']
  const known = new Set([...traced, ...nativeCalls(), ...Object.values(beyondTraces).flat()])
  const names = new Set([...known, ...[...known].flatMap((name) => onArm64[name] ?? [])])
  const listed = [...names].filter((name) => !never.includes(name) && !special.includes(name)).sort()
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: 1,
    architectures: ['SCMP_ARCH_X86_64', 'SCMP_ARCH_AARCH64'],
    syscalls: [
      { names: listed, action: 'SCMP_ACT_ALLOW' },
      ...Object.entries(ruled).map(([name, rule]) => ({ names: [name], ...rule })),
      ...families.map((value) => ({
        names: ['socket'],
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 0, value, op: 'SCMP_CMP_EQ' }],
      })),
    ],
  }
}

/** One program in a process: the process makes its calls from one execve to the next. */
class Program {
  calls = new Set()
  constructor(before, command) {
    this.before = before
    this.command = command
  }
  /** undefined: it does not count. What holdfast starts counts as holdfast; of a test, which runs most commands in its process, it alone. */
  get kind() {
    if (this.command === undefined) return this.before?.kind
    if (/"[^"]*\/bin\/holdfast\.js"|^"[^"]*\/holdfast",/.test(this.command)) return 'holdfast'
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
    const args = ['-f', '-qqq', '-s', '300', '-e', 'signal=none', ...filter, '-o', pipe, '--', ...command]
    const ended = once(spawn('strace', args, { stdio: 'inherit' }), 'close')
    const programs = await programsOf(createInterface({ input: createReadStream(pipe) }))
    const [code] = await ended
    return { programs, code }
  } finally {
    rmSync(directory, { recursive: true })
  }
}

async function main(args) {
  const anew = args[0] === '--anew'
  const command = anew ? args.slice(1) : args
  if (command.length === 0) {
    process.stderr.write('usage: node scripts/seccomp.mjs [--anew] COMMAND...\n')
    return 2
  }
  const before = anew || !existsSync(profile) ? [] : allowedBy(JSON.parse(readFileSync(profile, 'utf8')))
  const { programs, code } = await trace(before, command)
  const counted = programs.filter(({ kind }) => kind !== undefined)
  const calls = new Set(counted.flatMap((program) => [...program.calls]))
  const made = profileOf([...before, ...calls])
  const after = allowedBy(made)
  writeFileSync(profile, `${JSON.stringify(made, undefined, 2)}\n`)
  const told = (names) => [...names].sort().join(', ') || 'none'
  console.log(`${counted.length} programs; added: ${told(after.filter((name) => !before.includes(name)))}`)
  console.log(`left out: ${told([...calls].filter((name) => never.includes(name)))}; ${after.length} calls are allowed`)
  return code
}

if (process.argv[1] === import.meta.filename) process.exitCode = await main(process.argv.slice(2))
