/** Those of publishing, and of the system calls that it makes. */
const durable = 'src/durable'

export const ofPublishing = [
  {
    reason: 'the value of an entry of a table whose keys alone are read',
    mutants: [
      ...['published', 'driftRepaired', 'rolledBack', 'adopted'].map(
        (cause) => `${durable}/record-fields.ts: causes inverted ${cause}: true`,
      ),
      ...['hold', 'retired', 'history', 'pin', 'removing'].map(
        (field) => `${durable}/record.ts: demanded inverted ${field}: true`,
      ),
    ],
  },
  {
    reason: 'two statements, neither of which reads or writes what the other one writes',
    mutants: [
      `${durable}/publish.ts: firstBarrier swapped await closeSynced(all)`,
      `${durable}/posix/sync.ts: syncAll swapped if (context?.broken === false) contexts.push(context)`,
      `${durable}/inspect.ts: readPublishedFiles swapped await directories?.closeAll()`,
      `${durable}/inspect.ts: formDifferences swapped if (generation === undefined) differences.push({ path: dataLink, problem: 'missing' })`,
      `src/static-pods/newer-published.ts: currentLasting swapped if (isOlder(fresh, published)) log.warn(details, 'the API server now has an older version…`,
    ],
  },
  {
    reason: 'two conditions, of which one value can meet one only',
    mutants: [
      `${durable}/refusals.ts: renameError swapped if (code === 'EEXIST' && mode === 'noreplace') { return foreign(\`another program created …`,
      `${durable}/refusals.ts: renameError swapped if (code === 'EXDEV' && type === 'overlay' && mode === 'exchange') { return unfit(\`\${path…`,
    ],
  },
  {
    reason: 'what is computed before a refusal, or an answer, is dropped with it',
    mutants: [
      `${durable}/resolve.ts: resolve swapped if (opened.code !== 'ENOENT') { throw unfit(\`\${path} is not a directory\`, { code: opened.…`,
      `${durable}/names.ts: namesOf.stagingOf swapped if (!name.startsWith(\`\${prefix}-\`)) return undefined`,
      `${durable}/names.ts: namesOf.sequenceOf swapped if (!name.startsWith(\`\${prefix}.\`)) return undefined`,
      `${durable}/in-use.ts: relationOf swapped if (location.device !== device || !within.startsWith(prefix)) return undefined`,
    ],
  },
  {
    reason: 'a way past the steps that follow: without a publication that goes on, each of them does nothing',
    mutants: [
      `${durable}/publish.ts: publish swapped await each(going(), 'could not prepare the publication of', async (publication) => { cons…`,
    ],
  },
  {
    reason: 'what stands for a name that is missing: sysfs has no journal under either text',
    mutants: [
      `${durable}/posix/mount.ts: hasJournal shortened /DEVNAME=(.+)/.exec(readFileSync(\`/sys/dev/block/\${device}/uevent\`, 'latin1'))?.[1] ?? ''`,
    ],
  },
  {
    reason: 'what stands for a method that a generator always has, for the compiler',
    mutants: [
      `${durable}/posix/at-once.ts: AtOnceFileSystem.read.end shortened (await pieces.return?.()) ?? { done: true, value: undefined }`,
    ],
  },
  {
    reason: 'one more of a bound that is a matter of speed and memory: no answer depends on its number',
    mutants: [
      'native/libc.ts: mostCalls counted mostCalls = 32',
      'native/libc.ts: defaultPools counted defaultPools = 8',
    ],
  },
  {
    reason: 'a bit more of a flag which is never passed without the one that has this bit',
    mutants: ['native/sync-file-range.ts: waitAfter counted waitAfter = 4'],
  },
  {
    reason: 'what is asked only where content was found that is as desired, and so a target',
    mutants: [`${durable}/symlink-publication.ts: SymlinkPublication.isComplete inverted return false`],
  },
]
