/** docs/reasons.md: each reason, and each errno of `src/errors.ts`, with what to do. */
import { byErrno, failureFrom } from '../../src/errors.js'
import type { Reason } from '../../src/reasons.js'
import { markdownTable } from './markdown-table.js'

interface Explanation {
  /** The type of the event, and the objects that it is about. */
  readonly event: string
  readonly meaning: string
  readonly remedy: string
}

/** The compiler asks for a row for each reason. */
const explanations: Readonly<Record<Reason | 'StaticPodInstallerCompleted' | 'StaticPodInstallerFailed', Explanation>> =
  {
    Published: {
      event: 'Normal; Node, and each object in another version',
      meaning: 'new content is intact and durable on the disk',
      remedy: 'nothing',
    },
    Unchanged: {
      event: 'never an event',
      meaning: 'the disk holds this content already, durably',
      remedy: 'nothing',
    },
    Removed: {
      event: 'Normal; object and Node',
      meaning: 'an optional object vanished, and holdfast removed its files (`onMissing: remove`)',
      remedy: 'nothing, if you meant it; else create the object again, or set `onMissing: keep`',
    },
    DriftRepaired: {
      event: 'Normal; Node',
      meaning:
        'somebody else had changed the directory; holdfast published its content again. The message names the files',
      remedy: 'find out who writes there; one writer for each directory',
    },
    ObjectMissing: {
      event: 'Warning; object and Node',
      meaning: 'a required object or key does not exist, or is being deleted. The published content stays',
      remedy: 'create it, or make the content `optional: true`',
    },
    ObjectInvalid: {
      event: 'Warning; object and Node',
      meaning:
        'holdfast cannot make files from an object: a key is not a file name, two contents make the same file, a manifest is incomplete',
      remedy: 'correct the object or the contents that the message names',
    },
    CertificateInvalid: {
      event: 'Warning; object and Node (a block of a bundle: Node)',
      meaning:
        '`validate: [certificates]` refused it: certificate and key do not match, or do not parse as Go does it. The published content stays. Without `validate`: a warning of a certificate that is published so',
      remedy: 'put the right pair into the Secret',
    },
    ContentRejected: {
      event: 'Warning; Node',
      meaning:
        'a command of `beforePublish` did not accept the new content, or has changed it. The published content stays; the agent looks again at new content, every `driftInterval` and on SIGHUP',
      remedy: 'the message names the command; run it by hand on the new content, and correct the content at its source',
    },
    CertificateExpired: {
      event: 'Warning; object and Node',
      meaning: 'a certificate has expired, or is not valid yet. holdfast publishes it all the same',
      remedy: "renew it; if it is not valid _yet_, set this node's clock",
    },
    PublishFailed: {
      event: 'Warning; Node',
      meaning:
        'a system call failed; holdfast left the target as it was. The agent retries, with growing delays up to 2 minutes',
      remedy: 'the message names the call, the path and the errno; look at `dmesg` and `holdfast check`',
    },
    NoSpace: {
      event: 'Warning; Node',
      meaning: 'no space, no inodes or no quota left; holdfast left the target as it was. The agent retries',
      remedy: 'free space (`df`, `df -i`), or raise the quota',
    },
    DurabilityUnknown: {
      event: 'Warning; Node',
      meaning:
        'the new content is visible, but a power cut may take it: a flush of the disk failed. The agent publishes it again from new files',
      remedy: 'look at `dmesg`; replace a disk that fails to flush',
    },
    TargetForeign: {
      event: 'Warning; Node',
      meaning:
        'the directory holds files that holdfast did not publish, or `holdfast install` published it: the agent leaves it alone, and looks again every `driftInterval` and on SIGHUP. Or another agent has taken it over: this one leaves it alone until SIGHUP, its next start, or the end of the other one',
      remedy:
        'move it away, or set `adopt: replace` for this directory; where `install` published it, as the message says',
    },
    TargetUnfit: {
      event: 'Warning; Node',
      meaning:
        'holdfast cannot exchange anything there: a mount point, a symbolic link, a file system without exchange, a parent or a publication record that others may write to. Or `requireProven` refuses the file system',
      remedy: 'do what the message says, or choose another path; `holdfast check --config FILE` says what is wrong',
    },
    Busy: {
      event: 'never an event',
      meaning:
        'another process publishes to the same target, and the agent retries; or another agent has the same `stateDirectory`, and this one does not start (exit code 75)',
      remedy: 'nothing; if it lasts, stop one of the two',
    },
    AccessDenied: {
      event: 'Warning; object and Node',
      meaning:
        'the API server refuses to show the object (401, 403). The published content stays; a refusal never counts as absence. Of a command that looks at the disk: its user may not',
      remedy:
        '403: `holdfast rbac --config FILE | kubectl apply -f -`. 401: renew token or client certificate. Of a command: run it as a user who may read what is there',
    },
    SourceUnavailable: {
      event: 'Warning; Node (once the API server answers)',
      meaning:
        'the agent cannot reach the source, and a directory waits for it. The published content stays, and `/readyz` stays true if it was',
      remedy: 'look at the API server, the network and the kubeconfig: the log has the error',
    },
    NotConfirmed: {
      event: 'never an event',
      meaning:
        'the source has not answered since the start, has not confirmed that nothing is newer than the published content, or has reported something newer that is not published yet',
      remedy: "wait; if it lasts, look at the directory's other condition",
    },
    Stalled: {
      event: 'Warning; Node',
      meaning:
        'an operation on the disk has not ended within `operationTimeout`: its file system does not answer. The agent goes on by itself once it does',
      remedy:
        '[look at the disk](operations.md#when-a-disk-hangs): `dmesg`, its cable, its NFS server, `fsfreeze --unfreeze`',
    },
    Held: {
      event: 'Warning; Node',
      meaning:
        'an operator [holds](lifecycle.md#hold-and-release) the directory: holdfast publishes nothing there, and repairs no drift',
      remedy: '`holdfast release PATH`, once its reason is over',
    },
    RolledBack: {
      event: 'Warning; Node',
      meaning:
        'an operator has [rolled the directory back](lifecycle.md#rollback), and something else would be published; holdfast changed nothing',
      remedy: 'nothing: it ends with something newer, or with `holdfast release PATH`',
    },
    Relocating: {
      event: 'Normal; Node',
      meaning:
        'a directory [has moved](lifecycle.md#to-another-path), and its old path is kept up to date, too. The message says what it waits for: who uses the old path, or a time',
      remedy: 'have those who use the old path use the new one',
    },
    Relocated: {
      event: 'Normal; Node',
      meaning: 'the old path of a directory that has moved is gone',
      remedy: 'nothing; `movedFrom` may be left out',
    },
    AdoptionPending: {
      event: 'Warning; Node',
      meaning:
        'one of the seven checks of an [adoption](lifecycle.md#adopt) does not pass now: the message names it. The agent retries, with growing delays up to 2 minutes',
      remedy: 'nothing, if it ends; else what the message says',
    },
    ReportRefused: {
      event: 'never an event',
      meaning:
        'with `report: true`, the API server does not let this agent report: it lacks the right or the definition, or the report of this name is of another Node or agent. Everything else works; the agent tries again every five minutes',
      remedy: 'what the message says; [fleet.md](fleet.md) has what reports need',
    },
    AdoptionRefused: {
      event: 'Warning; Node',
      meaning:
        'one of these checks passes only once somebody acts. The agent leaves the directory alone, and looks again every `driftInterval` and on SIGHUP',
      remedy: 'what the message says; `holdfast adopt PATH --config FILE --dry-run` shows all seven',
    },
    InUse: {
      event: 'never an event',
      meaning: '`holdfast remove` found somebody who uses the path, or may do so; holdfast changed nothing',
      remedy: 'end what the message names, or use `--wait`',
    },
    DropPending: {
      event: 'Warning; Node',
      meaning:
        'a directory with [`onDrop: remove`](lifecycle.md#remove-and-drop) has left the configuration. The agent removes it after 10 minutes, once nobody uses it; the message says what keeps it',
      remedy: 'nothing; to keep it, configure it again',
    },
    Dropped: {
      event: 'Normal; Node',
      meaning: 'the agent has removed such a directory',
      remedy: 'nothing',
    },
    HistoryRewound: {
      event: 'Warning; object',
      meaning:
        'the current version of an object is older than the published one: etcd was restored from a backup. The agent publishes it',
      remedy: 'nothing, if somebody restored etcd; else find out why the API server went back',
    },
    HookFailed: {
      event: 'Warning; Node',
      meaning:
        'a hook of `afterPublish` failed after its retries. The agent runs it again later and after a restart. The published content stays',
      remedy: 'read in the message how it failed; `holdfast status` lists the hooks that have yet to succeed',
    },
    ConfigurationInvalid: {
      event: 'Warning; Node',
      meaning:
        'the agent read the file again (SIGHUP, `reload: auto`), and it is wrong, or the agent cannot put it in force; the old one stays in force',
      remedy: 'correct it: `holdfast sync --config FILE --dry-run` reports each mistake with its line',
    },
    StaticPodInstallerCompleted: {
      event: "Normal; the installer's owner, pod or namespace",
      meaning: 'a revision is installed',
      remedy: 'nothing',
    },
    StaticPodInstallerFailed: {
      event: 'Warning; the same',
      meaning: 'an installation failed; the manifests are as they were',
      remedy: 'read the message; try `holdfast install … --dry-run`',
    },
  }

const head = `# What each reason and each errno means

For operators who read a reason in an event, in \`holdfast status\`, in \`/readyz\` or in the log, or an errno in an error, and want to know what to do.
\`npm run reasons\` writes this page from the tables that the program and its tests use.
[operations.md](operations.md#events) says where events appear, and [alerts](alerts/README.md) what each alert means.

## Reasons

The words never change: build your alerts on them. While a directory has a reason of a failure, what was published there stays.
`

const errnos = `## Advice by errno

An error names the call, the path and the errno, and says what to do. _Retries_ tells whether the agent tries again by itself; otherwise it waits until
somebody acts, and looks again every \`driftInterval\` and on SIGHUP. After the exchange, a call that fails gives \`DurabilityUnknown\`, whatever its errno.
An errno that has no row gives \`PublishFailed\`.
`

const code = (text: string): string => `\`${text}\``

/** The whole page, as prettier would write it. */
export function reasonsPage(): string {
  const reasons = Object.entries(explanations).map(([reason, { event, meaning, remedy }]) => [
    code(reason),
    event,
    meaning,
    remedy,
  ])
  const codes = Object.entries(byErrno).map(([errno, { reason, advice = '', adviceToRead }]) => {
    const { terminal } = failureFrom(Object.assign(new Error(errno), { code: errno }))
    const toRead = adviceToRead === undefined ? '' : `; where the call was to read: ${adviceToRead}`
    return [code(errno), code(reason), terminal ? 'no' : 'yes', advice + toRead]
  })
  return [
    head,
    markdownTable([['reason', 'type, reported on', 'meaning', 'what to do'], ...reasons]),
    '',
    errnos,
    markdownTable([['errno', 'reason', 'retries', 'what to do'], ...codes]),
    '',
  ].join('\n')
}
