/**
 * Where holdfast differs from library-go, and why. Each difference that the cases show must be in one of these rows, and each row must be
 * shown by a case, or by a test that it names. table.ts makes the table of docs/library-go.md from it.
 */
import { installerDifferences } from './installer-differences.js'
import { at, exactly, isMonitor, isSyncer, type Row } from './row.js'

const prune = [
  {
    libraryGo: 'prune ends at a name it cannot parse',
    holdfast: 'leaves it alone',
    why: 'one stray directory must not stop all pruning',
    shown: exactly(
      'prune: a name without a number',
      'end: 255 > 0',
      ...[1, 2].flatMap((revision) => [
        `only theirs resources/web-pod-${revision}`,
        `only theirs resources/web-pod-${revision}/web-pod.yaml`,
      ]),
    ),
  },
  {
    libraryGo: 'prune does not look at manifests',
    holdfast: 'what they name stays; where they cannot be read, it removes nothing',
    why: 'it would not know what is in use',
    shown: at('only ours', /^resources\/web-pod-3/, 'prune: the live revision is eligible'),
  },
  {
    libraryGo: 'prune removes in place, unsynced, without a lock',
    holdfast: 'renamed away, synced, then removed; waits for installers',
    why: 'a crash leaves a complete revision or none',
    tested: ['test/static-pods/prune/prune-killed.test.ts', 'prune waits for a running installation'],
  },
  {
    libraryGo: 'files that prune could not remove: the run ends there',
    holdfast: 'the others go, and it ends with 1',
    why: 'one stray file must not stop all pruning',
    tested: [
      'test/static-pods/prune/prune.test.ts',
      'prune reports a revision as failed that is out of sight, but not off the disk',
    ],
  },
  {
    libraryGo: 'prune may delete the last known good revision',
    holdfast: 'protected, with all that manifests name',
    why: 'there would be nothing to fall back to',
    shown: at('only ours', /^resources\/web-pod-1/, 'prune: the last known good one is eligible'),
  },
] satisfies readonly Row[]

const monitor = [
  {
    libraryGo: 'an error of the check of readiness ends the monitor',
    holdfast: 'a probe that cannot ask is unknown: at the timeout, exit code 1',
    why: 'other probes may know',
    shown: at('end', /^$/, 'monitor: the check cannot ask'),
  },
  {
    libraryGo: 'ready is what that check says',
    holdfast: 'no failure for `--ready-for`: 10 s, or half of the timeout',
    why: 'the old pod may still answer',
    tested: ['test/static-pods/monitor/monitor.test.ts', 'ready three times in a row'],
  },
  {
    libraryGo: 'the monitor always sets `currentRevision` of its operator',
    holdfast: 'with `--operator-status`',
    why: 'the resource is compiled in there',
    shown: at('rollout', /^$/, 'monitor: ready, and no --operator-status'),
  },
  {
    libraryGo: 'the last-known-good link is removed, then made',
    holdfast: 'replaced by a rename, synced',
    why: 'it is never missing',
    tested: ['test/durable/failing-calls.test.ts', 'a process dies, or the power is cut, at each change of'],
  },
  {
    libraryGo: 'the fallback is written in place, 0644, not synced',
    holdfast: 'as every manifest: renamed, synced, 0600',
    why: 'it is what the node boots from',
    shown: (difference) =>
      isMonitor(difference) &&
      at('mode', /^manifests\/web-pod\.yaml$/)(difference) &&
      difference.theirs === '0644' &&
      difference.ours === '0600',
  },
  {
    libraryGo: 'a revision counts as fit for fallback if it has a manifest',
    holdfast: 'it must parse, carry its own revision, and be as it was published',
    why: 'falling back to a torn one helps nobody',
    shown: exactly(
      'monitor: falls back, the newest older one is torn',
      'content manifests/web-pod.yaml: revision 7 > revision 5',
      'only theirs manifests/web-startup-monitor-pod.yaml',
      'content resources/web-last-known-good: ROOT/resources/web-pod-6/web-pod.yaml > ROOT/resources/web-pod-5/web-pod.yaml',
    ),
  },
  {
    libraryGo: 'nothing to fall back to: the monitor removes its own manifest',
    holdfast: 'it ends with 1 and leaves it',
    why: 'started again, it may find the revision ready after all',
    shown: at('only ours', /^manifests\/web-startup-monitor-pod\.yaml$/, 'monitor: nothing to fall back to'),
  },
  {
    libraryGo: 'the timeout begins with each start of the monitor',
    holdfast: 'with the revision',
    why: 'a monitor that is restarted would never fall back',
    tested: ['test/static-pods/monitor/monitor.test.ts', "monitor's time runs on when it is killed and started again"],
  },
  {
    libraryGo: 'done, the monitor spins until it is killed',
    holdfast: 'ends',
    why: 'waiting should take no processor time',
    shown: (difference) => isMonitor(difference) && difference.what === 'end' && difference.theirs === 'runs on',
  },
  {
    libraryGo: 'old logs carry the time in their names',
    holdfast: '`FILE.1`, `FILE.2`',
    why: 'a restart finds them by name',
    tested: ['test/static-pods/log-file.test.ts', 'the log file makes room at 5 MB, and two older files stay'],
  },
] satisfies readonly Row[]

const syncer = [
  {
    libraryGo: 'cert-syncer is a daemon only',
    holdfast: '`agent` is one; `sync` makes one pass and ends',
    why: 'an init container has the files before the pod starts',
    shown: (difference) => isSyncer(difference) && difference.what === 'end',
  },
  {
    libraryGo: 'cert-syncer: events `CertificateUpdated`, `CertificateRemoved`',
    holdfast: '`agent`: `Published`, `Removed` and the other [reasons](operations.md#reasons); `sync`: none',
    why: 'they are the same whatever the directory holds',
    shown: (difference) => isSyncer(difference) && difference.what === 'events',
  },
  {
    libraryGo:
      'cert-syncer: a key that left the object stays on the disk while the rest is equal, and so do other modes',
    holdfast: 'the directory becomes what the object is',
    why: 'a withdrawn key should be gone',
    shown: exactly(
      'cert-syncer: only a file that is gone',
      'only theirs certs/secrets/serving/gone.crt',
      'mode certs/secrets/serving/tls.crt: 0644 > 0600',
    ),
  },
  {
    libraryGo:
      'cert-syncer: no directory for an optional object that is absent; once it is deleted, its directory goes',
    holdfast: 'an empty one, if it is a directory of the configuration',
    why: 'a target is never missing: what mounts it finds it, and a pod that does not would not start',
    shown: at(
      'only ours',
      /^certs\/(secrets|configmaps)(\/(absent|serving))?$/,
      'cert-syncer: first files',
      'cert-syncer: an optional object is deleted',
    ),
  },
] satisfies readonly Row[]

export const differences: readonly Row[] = [...installerDifferences, ...prune, ...monitor, ...syncer]
