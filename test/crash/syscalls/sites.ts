/** Which calls a run of the program makes, and which of them an error or a kill can be put at. */
import { type Program, type Thread, type TraceOptions, traced } from './traced.js'

/** One call of one run: strace finds it again by thread, name and number. */
export interface Site {
  readonly thread: Thread
  readonly call: string
  /** 1 for this thread's first call of this name; with `file`, for its first on that file. */
  readonly number: number
  /** Relative path of the open file, where strace has to look for the call by that: see below. */
  readonly file?: string
  /** Its file or directory, without the random parts of names: for people. */
  readonly subject: string
  /** Whether it changes something, makes it durable, or begins the work. */
  readonly writes: boolean
}

const writing = [
  'mkdir,symlink,write,pwrite64,fchmod,fchown,lchown,sync_file_range,io_setup,io_submit,io_getevents,renameat2,rename',
  'unlink,rmdir,utimensat,flock,openat2,fsync,ftruncate,fsetxattr',
]
  .join()
  .split(',')
const reading = 'read,pread64,getdents64,statx,newfstatat,readlink,fgetxattr,openat'.split(',')

/** Every call on something in `root`, of all threads, in the order of their beginning. */
export async function sitesOf(
  program: Program,
  args: readonly string[],
  root: string,
  options: Omit<TraceOptions, 'strace' | 'thread'>,
): Promise<Site[]> {
  const strace = ['-e', `trace=${[...writing, ...reading].join()}`, '-e', 'signal=none']
  const run = await traced(program, args, { ...options, strace, thread: 'all' })
  if (run.code !== 0) throw new Error(`holdfast ${args.join(' ')} does not work at all: ${run.stderr}`)
  const counts = new Map<string, number>()
  const sites: Site[] = []
  for (const line of run.log.split('\n')) {
    const [, id = '', call = '', rest = ''] = /^(\d+)\s+(\w+)\((.*)$/.exec(line) ?? []
    const thread = Number(id) === run.threads.worker ? 'worker' : Number(id) === run.threads.main ? 'main' : undefined
    if (thread === undefined) continue
    const subject = subjectOf(call, rest, root)
    // The thread also writes to the event loop's eventfd, more often or less: only by file are its writes countable.
    const file = call === 'write' ? new RegExp(`<${root}/([^>]*)>`).exec(rest)?.[1] : undefined
    const counter = `${thread} ${call} ${file ?? ''}`
    const number = (counts.get(counter) ?? 0) + 1
    counts.set(counter, number)
    if (subject === undefined) continue
    const writes = writing.includes(call) || /O_CREAT|O_WRONLY/.test(rest)
    sites.push({ thread, call, number, subject, writes, ...(file === undefined ? {} : { file }) })
  }
  return sites
}

/** What \`sync\` notes in the state directory: which directories are configured. */
const listed = 'directories.json'

/** The place in a run where staged content becomes visible. */
export function exchangeIn(sites: readonly Pick<Site, 'call' | 'subject'>[]): number {
  return sites.findIndex(({ call, subject }) => (call === 'renameat2' || call === 'rename') && subject !== listed)
}

/** undefined for what Node does for itself. */
function subjectOf(call: string, rest: string, root: string): string | undefined {
  if (call.startsWith('io_')) return ''
  const inside = /"\/proc\/self\/fd\/\d+\/([^"]*)"/.exec(rest)?.[1]
  const path = new RegExp(`[<"]${root}/?([^>"]*)`).exec(rest)?.[1]
  // A name inside an open directory; the listing of one; or the path of an open file.
  const isList = rest.includes(`${listed}"`)
  const subject = isList ? listed : call === 'renameat2' ? 'the target' : (inside ?? path)
  // The hint, or the wait for its write-out: two steps.
  const waits = call === 'sync_file_range' && rest.includes('WAIT_AFTER') ? ', waiting' : ''
  return (subject === undefined ? undefined : subject + waits)
    ?.replace(/\.holdfast-[0-9a-f]{16}-[0-9a-f]{16}/g, 'STAGING')
    .replace(/\.holdfast-[0-9a-f]{16}\.\d+-[0-9a-f]{16}/g, 'EARLIER')
    .replace(/\.holdfast-[0-9a-f]{16}\.lock/g, 'LOCK')
    .replace(/\.holdfast-[0-9a-f]{16}\.\d+/g, 'RECORD')
    .replace(/\.\.\d+-[0-9a-f]{16}/g, 'GENERATION')
}

/** For a table or a message. */
export function nameOf({ thread, call, number, subject }: Site): string {
  return `${call} ${subject} (${thread} ${number})`
}
