/** What prune, the startup monitor and the cert-syncer are run on. */
import { podText } from '../static-pods/pods.js'
import { base64, live, revision, type Case } from './case.js'

const three = { ...revision(1), ...revision(2), ...live(3) }
const prune = (...flags: string[]): string[] => ['--resource-dir=ROOT/resources', '--static-pod-name=web-pod', ...flags]
const monitor = [
  ...['--revision=7', '--target-name=web', '--resource-dir=ROOT/resources', '--manifests-dir=ROOT/manifests'],
  ...['--node-name=NODE', '--installer-lock-file=ROOT/lock'],
]
const late = [...monitor, '--fallback-timeout-duration=1ms']
const own = { 'manifests/web-startup-monitor-pod.yaml': podText({ name: 'web-startup-monitor' }) }
const notReady = { compiledIn: { READY: 'false' }, more: ['--ready-exec=false'] }
const synced = 'secrets/serving'

export const otherCases = {
  'prune: up to a revision': { command: 'prune', before: three, flags: prune('--max-eligible-revision=2') },
  'prune: but the protected': {
    command: 'prune',
    before: three,
    flags: prune('--max-eligible-revision=2', '--protected-revisions=1'),
  },
  'prune: the live revision is eligible': {
    command: 'prune',
    before: three,
    flags: prune('--max-eligible-revision=3'),
  },
  'prune: the last known good one is eligible': {
    command: 'prune',
    before: { ...three, 'resources/web-last-known-good': { target: 'ROOT/resources/web-pod-1/web-pod.yaml' } },
    flags: prune('--max-eligible-revision=2'),
  },
  'prune: a name without a number': {
    command: 'prune',
    before: { ...three, 'resources/web-pod-0-of-mine/': '' },
    flags: prune('--max-eligible-revision=2'),
  },
  'prune: no --max-eligible-revision': { command: 'prune', before: three, flags: prune() },
  'prune: --max-eligible-revision=0': { command: 'prune', before: three, flags: prune('--max-eligible-revision=0') },
  'prune: --protected-revisions=': {
    command: 'prune',
    before: three,
    flags: prune('--max-eligible-revision=2', '--protected-revisions='),
  },
  'prune: no resource directory': { command: 'prune', flags: prune('--max-eligible-revision=2') },
  'monitor: ready': {
    command: 'startup-monitor',
    before: { ...revision(6), ...live(7), ...own },
    compiledIn: { READY: 'true' },
    rollout: { current: 6, target: 7 },
    flags: monitor,
    more: [
      '--ready-exec=true',
      '--kubeconfig=KUBECONFIG',
      '--operator-status=kubeapiservers.operator.openshift.io/cluster',
    ],
  },
  'monitor: ready, and no --operator-status': {
    command: 'startup-monitor',
    before: { ...revision(6), ...live(7), ...own },
    compiledIn: { READY: 'true' },
    rollout: { current: 6, target: 7 },
    flags: monitor,
    more: ['--ready-exec=true'],
  },
  'monitor: ready, and the target is another': {
    command: 'startup-monitor',
    before: { ...live(7), ...own },
    compiledIn: { READY: 'true' },
    rollout: { current: 6, target: 8 },
    flags: monitor,
    more: [
      '--ready-exec=true',
      '--kubeconfig=KUBECONFIG',
      '--operator-status=kubeapiservers.operator.openshift.io/cluster',
    ],
  },
  'monitor: falls back': {
    command: 'startup-monitor',
    before: {
      ...revision(5),
      ...revision(6),
      ...live(7),
      ...own,
      'resources/web-last-known-good': { target: 'ROOT/resources/web-pod-5/web-pod.yaml' },
    },
    flags: late,
    ...notReady,
  },
  'monitor: falls back, none is known to be good': {
    command: 'startup-monitor',
    before: { ...revision(5), ...revision(6), ...live(7), ...own },
    flags: late,
    ...notReady,
  },
  'monitor: falls back, the newest older one is torn': {
    command: 'startup-monitor',
    before: { ...revision(5), ...live(7), ...own, 'resources/web-pod-6/web-pod.yaml': '{' },
    flags: late,
    ...notReady,
  },
  'monitor: nothing to fall back to': {
    command: 'startup-monitor',
    before: { ...live(7), ...own },
    flags: late,
    ...notReady,
  },
  'monitor: another revision is live': {
    command: 'startup-monitor',
    before: { ...revision(7), ...live(6), ...own },
    flags: late,
    ...notReady,
  },
  'monitor: the check cannot ask': {
    command: 'startup-monitor',
    before: { ...revision(6), ...live(7), ...own },
    compiledIn: { READY: 'error' },
    flags: late,
    more: ['--ready-exec=exit 127'],
  },
  'monitor: no --target-name': {
    command: 'startup-monitor',
    before: live(7),
    flags: monitor.filter((flag) => !flag.startsWith('--target-name')),
    ...notReady,
  },
  'cert-syncer: first files': {
    command: 'cert-syncer',
    secrets: { serving: { 'tls.crt': base64('crt'), 'tls.key': base64('REVISION'), 'run.sh': base64('x') } },
    configMaps: {
      trust: { data: { 'ca.crt': 'ca', 'run.sh': 'x' }, binaryData: { bytes: base64(Uint8Array.of(0xff)) } },
    },
    compiledIn: { SECRETS: 'serving', CONFIGMAPS: 'trust', OPTIONAL_SECRETS: 'absent', OPTIONAL_CONFIGMAPS: 'absent' },
    flags: [],
  },
  'cert-syncer: newer content, and a file that is gone': {
    command: 'cert-syncer',
    before: { [`certs/${synced}/tls.crt`]: 'old', [`certs/${synced}/gone.crt`]: 'old' },
    secrets: { serving: { 'tls.crt': base64('new') } },
    compiledIn: { SECRETS: 'serving' },
    flags: [],
  },
  'cert-syncer: only a file that is gone': {
    command: 'cert-syncer',
    before: { [`certs/${synced}/tls.crt`]: 'crt', [`certs/${synced}/gone.crt`]: 'old' },
    secrets: { serving: { 'tls.crt': base64('crt') } },
    compiledIn: { SECRETS: 'serving' },
    flags: [],
  },
  'cert-syncer: an optional object is deleted': {
    command: 'cert-syncer',
    before: { [`certs/${synced}/tls.crt`]: 'old' },
    // Without any object in its namespace, library-go's never looks.
    configMaps: { another: { data: { key: 'x' } } },
    compiledIn: { OPTIONAL_SECRETS: 'serving' },
    flags: [],
  },
  'cert-syncer: a required object is missing, another is not': {
    command: 'cert-syncer',
    before: { [`certs/${synced}/tls.crt`]: 'old' },
    secrets: { other: { key: base64('x') } },
    compiledIn: { SECRETS: 'serving,other' },
    flags: [],
  },
} satisfies Record<string, Case>
