import { Option, type Command } from 'commander'
import { parseDuration } from './option-values.js'
import { collectNames, parseName, parseRevisionFlag, requireFlags } from './static-pod-options.js'
import type { RevisionObjects } from '../static-pods/plan-from-api.js'

/** What says which objects a revision is made of: shared by `install` and `rbac install`. */
export interface RevisionFlags {
  readonly revision?: number
  readonly namespace?: string
  readonly pod?: string
  readonly secrets?: readonly string[]
  readonly optionalSecrets?: readonly string[]
  readonly configmaps?: readonly string[]
  readonly optionalConfigmaps?: readonly string[]
  readonly certDir?: string
  readonly certSecrets?: readonly string[]
  readonly optionalCertSecrets?: readonly string[]
  readonly certConfigmaps?: readonly string[]
  readonly optionalCertConfigmaps?: readonly string[]
}

export interface PlaceFlags {
  readonly resourceDir?: string
  readonly podManifestDir?: string
  readonly podManifestsLockFile?: string
  readonly timeoutDuration: number
}

const list = (flags: string, description: string) => new Option(flags, description).argParser(collectNames)

export function addRevisionOptions(command: Command): Command {
  const options = [
    new Option('--revision <number>', 'the revision to install').argParser(parseRevisionFlag),
    new Option('-n, --namespace <name>', 'namespace of the objects').argParser(parseName).env('HOLDFAST_NAMESPACE'),
    new Option('--pod <name>', 'name of the pod: ConfigMap POD-REVISION holds its manifests').argParser(parseName),
    list('--secrets <names>', 'Secrets NAME-REVISION that go into the revision; repeat it, or use commas'),
    list('--optional-secrets <names>', 'the same, which may be absent'),
    list('--configmaps <names>', 'ConfigMaps NAME-REVISION that go into the revision'),
    list('--optional-configmaps <names>', 'the same, which may be absent'),
    new Option('--cert-dir <dir>', 'directory for objects without revisions; a path of its own'),
    list('--cert-secrets <names>', 'Secrets NAME that go into --cert-dir'),
    list('--optional-cert-secrets <names>', 'the same, which may be absent'),
    list('--cert-configmaps <names>', 'ConfigMaps NAME that go into --cert-dir'),
    list('--optional-cert-configmaps <names>', 'the same, which may be absent'),
  ]
  for (const option of options) command.addOption(option)
  return command
}

export function addPlaceOptions(command: Command): Command {
  const options = [
    new Option('--resource-dir <dir>', 'where revisions go: DIR/POD-REVISION'),
    new Option('--pod-manifest-dir <dir>', "kubelet's manifest directory"),
    new Option('--pod-manifests-lock-file <file>', 'lock (flock) to hold while manifests change'),
    new Option('--timeout-duration <duration>', 'limit for the whole run')
      .argParser(parseDuration)
      .default(120_000, '2m0s'),
  ]
  for (const option of options) command.addOption(option)
  return command
}

/** `more`: further flags that the command needs. @throws UsageError that names all that are missing */
export function revisionObjects(flags: RevisionFlags, more: Readonly<Record<string, unknown>> = {}): RevisionObjects {
  const { revision, namespace, pod, configmaps, certDir } = flags
  const certificates = {
    secrets: flags.certSecrets ?? [],
    optionalSecrets: flags.optionalCertSecrets ?? [],
    configMaps: flags.certConfigmaps ?? [],
    optionalConfigMaps: flags.optionalCertConfigmaps ?? [],
  }
  const needed = {
    ...{ '--revision': revision, '--namespace': namespace, '--pod': pod, '--configmaps': configmaps },
    ...(Object.values(certificates).some((names) => names.length > 0) && {
      '--cert-dir (there are objects for it)': certDir,
    }),
    ...more,
  }
  // Nothing was said of any object: it may be files that are meant.
  const fromFiles = namespace === undefined && configmaps === undefined && '--pod-manifest-dir' in more
  requireFlags(needed, fromFiles ? '; to install from files, name a manifest first' : '')
  if (revision === undefined || namespace === undefined || pod === undefined) throw new Error('unreachable')
  return {
    ...{ revision, namespace, pod },
    secrets: flags.secrets ?? [],
    optionalSecrets: flags.optionalSecrets ?? [],
    configMaps: configmaps ?? [],
    optionalConfigMaps: flags.optionalConfigmaps ?? [],
    certificates: certDir ? { directory: certDir, ...certificates } : undefined,
  }
}
