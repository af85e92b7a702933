/** What the installer is run on. */
import { podText } from '../static-pods/pods.js'
import { base64, live, pod, type Case } from './case.js'

const places = ['--resource-dir=ROOT/resources', '--pod-manifest-dir=ROOT/manifests']
const identity = ['--namespace=NAMESPACE', '--pod=web-pod', '--configmaps=web-pod']
const install = (revision: number | string, ...more: string[]): string[] => [
  ...[`--revision=${revision}`, ...identity, ...places, '--timeout-duration=90s', ...more],
]
const client = { 'tls.crt': base64('crt'), 'tls.key': base64('REVISION on NODE_NAME'), 'run.sh': base64('x') }
const podOf = (text: string, revision: number | string = 6): NonNullable<Case['configMaps']> => ({
  [`web-pod-${revision}`]: { data: { 'pod.yaml': text } },
})

export const installerCases = {
  'all kinds of objects': {
    command: 'installer',
    secrets: { 'client-6': client, serving: { 'tls.key': base64('key of NODE_ENVVAR_NAME') } },
    configMaps: {
      'web-pod-6': {
        data: { 'pod.yaml': pod(), 'watch-pod.yaml': podText({ name: 'watch' }), version: 'not a manifest' },
      },
      'config-6': { data: { 'config.yaml': 'REVISION NODE_NAME NODE_ENVVAR_NAME', 'run.sh': 'x' } },
      trust: { data: { 'ca.crt': 'ca' } },
    },
    flags: install(
      6,
      ...['--configmaps=config', '--secrets=client', '--optional-secrets=absent', '--cert-dir=ROOT/certs'],
      ...['--optional-configmaps=absent,absent-too', '--cert-secrets=serving', '--optional-cert-secrets=absent'],
      ...['--cert-configmaps=trust', '--optional-cert-configmaps=absent', '--pod-manifests-lock-file=ROOT/lock'],
    ),
  },
  'bytes that are no text': {
    command: 'installer',
    secrets: { 'client-6': { key: base64(Uint8Array.of(255, 0, 254)), empty: '' } },
    configMaps: {
      ...podOf(pod()),
      'config-6': { data: { text: 'ü' }, binaryData: { bytes: base64(Uint8Array.of(0xff)) } },
    },
    flags: install(6, '--configmaps=config', '--secrets=client'),
  },
  'objects with nothing in them': {
    command: 'installer',
    secrets: { 'client-6': {} },
    configMaps: { ...podOf(pod()), 'config-6': {} },
    flags: install(6, '--configmaps=config', '--secrets=client'),
  },
  'a strict umask': {
    command: 'installer',
    umask: 0o077,
    secrets: { 'client-6': client },
    configMaps: podOf(pod()),
    flags: install(6, '--secrets=client'),
  },
  'a required object is missing': {
    command: 'installer',
    configMaps: podOf(pod()),
    flags: install(6, '--secrets=none'),
  },
  'no pod.yaml': {
    command: 'installer',
    configMaps: { 'web-pod-6': { data: { other: 'x' } } },
    flags: install(6),
  },
  'all of --cert-dir is absent': {
    command: 'installer',
    configMaps: podOf(pod()),
    flags: install(6, '--cert-dir=ROOT/certs', '--optional-cert-secrets=absent', '--optional-cert-configmaps=absent'),
  },
  'optional objects of --cert-dir have vanished': {
    command: 'installer',
    before: { 'certs/secrets/absent/tls.key': 'kept' },
    configMaps: podOf(pod()),
    flags: install(6, '--cert-dir=ROOT/certs', '--optional-cert-secrets=absent'),
  },
  'an older revision': {
    command: 'installer',
    before: live(7),
    configMaps: podOf(pod()),
    flags: install(6),
  },
  'the live revision, with other content': {
    command: 'installer',
    before: { ...live(6), 'resources/web-pod-6/secrets/client/tls.key': 'other' },
    secrets: { 'client-6': client },
    configMaps: podOf(pod()),
    flags: install(6, '--secrets=client'),
  },
  'a revision that a crash left': {
    command: 'installer',
    before: { ...live(5), 'resources/web-pod-6/secrets/client/tls.key': 'other' },
    secrets: { 'client-6': client },
    configMaps: podOf(pod()),
    flags: install(6, '--secrets=client'),
  },
  'a field that no Pod has': {
    command: 'installer',
    configMaps: podOf(pod('REVISION', {}, { novel: { of: 'another version' } })),
    flags: install(6),
  },
  'a pod that refers to the API': {
    command: 'installer',
    before: live(5),
    configMaps: podOf(pod('REVISION', {}, { serviceAccountName: 'web' })),
    flags: install(6),
  },
  'a pod that kubelet refuses': {
    command: 'installer',
    before: live(5),
    configMaps: podOf(pod('REVISION', {}, { containers: [] })),
    flags: install(6),
  },
  'a kubelet of 1.22': { command: 'installer', kubelet: 'v1.22.9', configMaps: podOf(pod()), flags: install(6) },
  'a leading zero': { command: 'installer', configMaps: podOf(pod(), '006'), flags: install('006') },
  'a revision that is no number': { command: 'installer', configMaps: podOf(pod(), 'x'), flags: install('x') },
  'no --resource-dir': {
    command: 'installer',
    configMaps: podOf(pod()),
    flags: ['--revision=6', ...identity, '--pod-manifest-dir=ROOT/manifests'],
  },
  'no --revision': { command: 'installer', configMaps: podOf(pod()), flags: [...identity, ...places] },
  'a flag that there is not': { command: 'installer', configMaps: podOf(pod()), flags: install(6, '--novel') },
} satisfies Record<string, Case>
